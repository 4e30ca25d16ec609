/** Internal type of plugins' endpoints, and the unread body of requests to them. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import type { Endpoint } from './author/tools.ts';
import { callKey } from './call-key.ts';
import type { Call } from './call.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';

/** An endpoint as plugins of this repository add it: `Endpoint` of author/tools.ts with further options. */
export interface WholeEndpoint extends Omit<Endpoint, 'method' | 'format' | 'handle'> {
  readonly method: Endpoint['method'] | 'PATCH';
  /** The format of its responses and errors, or a function that selects it where several formats share the path. */
  readonly format: string | ((headers: IncomingHttpHeaders, query: URLSearchParams) => string);
  /** True: the body is not read before the handler runs, which reads it as {@link requestBody} of the call. */
  readonly readsBody?: boolean;
  readonly handle: (
    call: Call,
    params: Readonly<Record<string, string>>,
  ) => Promise<Observable<GatewayEvent>>;
}

/** The body of a request that was not read yet. Call one of `json` and `stream`, once. */
export interface RequestBody {
  /** The content type, as the client wrote it. */
  readonly type: string;
  /** The length in `content-length`, in bytes; undefined where the header is absent, or the body is compressed. */
  readonly length: number | undefined;
  /** Reads the body as JSON; an empty object where nothing was sent. Throws as the reading of any call's body does. */
  json(): Promise<JsonObject>;
  /** Returns the decompressed body as a stream. Throws 413 for a `content-length` of more than `limit` bytes. */
  stream(limit: number): Readable;
}

/** The unread body of a call, for endpoints with `readsBody`. */
export const requestBody = callKey<RequestBody>('request body');
