/** Clients of providers as the gateway makes them: those of authors, for whole calls, and closed by the gateway. */
import type { Observable } from 'rxjs';
import type * as author from './author/http.ts';
import type { Call } from './call.ts';
import type { Upstream } from './channel.ts';
import type { GatewayEvent } from '../model/event.ts';

export type { Download, HttpRequest, UpstreamSocketRequest } from './author/http.ts';

/** Sends requests to providers over kept-alive connections. */
export interface HttpClient extends author.HttpClient {
  send(call: Call, request: author.HttpRequest): Promise<Upstream>;
  close(): Promise<void>;
}

/** Opens WebSockets to providers. */
export interface UpstreamSockets extends author.SocketClient {
  connect(call: Call, request: author.UpstreamSocketRequest): Promise<Observable<GatewayEvent>>;
  close(): Promise<void>;
}
