import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import type { Endpoint } from './author/tools.ts';
import { callKey } from './call-key.ts';
import type { Call } from './call.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';

/** An endpoint as plugins of this repository add it: `Endpoint` of author/tools.ts, and what else a path may need. */
export interface WholeEndpoint extends Omit<Endpoint, 'method' | 'format' | 'handle'> {
  readonly method: Endpoint['method'] | 'PATCH';
  /** The format in which it answers and refuses; where several share the path, what tells them apart. */
  readonly format: string | ((headers: IncomingHttpHeaders, query: URLSearchParams) => string);
  /** True: the body is not read before the handler is asked, which finds it with the call as its {@link requestBody}. */
  readonly readsBody?: boolean;
  readonly handle: (
    call: Call,
    params: Readonly<Record<string, string>>,
  ) => Promise<Observable<GatewayEvent>>;
}

/** The body of a request that nobody has read yet. One of the two is asked for, once. */
export interface RequestBody {
  /** The content type, as the client wrote it. */
  readonly type: string;
  /** How many bytes are announced; undefined where that is not said, or they are compressed. */
  readonly length: number | undefined;
  /** All of it as JSON, an empty object where nothing was sent. Throws as the body of any call does. */
  json(): Promise<JsonObject>;
  /** As it comes, without its compression. Throws 413 for a body that is announced to be longer than so many bytes. */
  stream(limit: number): Readable;
}

/** The body of a call whose endpoint reads it by itself. */
export const requestBody = callKey<RequestBody>('request body');
