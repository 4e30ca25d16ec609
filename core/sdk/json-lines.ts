/** Reads NDJSON responses of providers within a limit, for channels that answer in events, and turns error responses into errors. */
import {
  concat,
  concatMap,
  defer,
  mergeMap,
  of,
  reduce,
  throwError,
  type Observable,
  type ObservableInput,
} from 'rxjs';
import { HeldBytes } from '../model/held-bytes.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import type { Upstream } from './channel.ts';
import { GatewayError } from './errors.ts';
import { wholeLimit } from './whole-bytes.ts';

/** Maximum number of bytes of an error response that are kept. */
const errorLimit = 64 * 1024;

/** A response by which a provider refused a request: its status, its headers and the beginning of its body. */
export class ProviderRefusal extends Error {
  readonly status: number;
  readonly headers: Upstream['headers'];
  readonly body: Buffer;

  constructor({ status, headers }: Pick<Upstream, 'status' | 'headers'>, body: Buffer) {
    super(`The provider returned status ${status}.`);
    this.name = 'ProviderRefusal';
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/**
 * Reads a provider's response of JSON objects, one a line (NDJSON). Errors when the provider refuses the request, when a line is no JSON
 * object, and when a line is longer than `limit` bytes (default 32 MiB). Sluice converts these errors to the error for the client.
 *
 * @example
 * answer: (call, { body }) => jsonLines(http.send(call, { url, headers, body: JSON.stringify(body) })).pipe(concatMap(eventsOfLine))
 */
export function jsonLines(
  response: Upstream | Promise<Upstream>,
  limit = wholeLimit,
): Observable<JsonObject> {
  return defer((): ObservableInput<Upstream> => ('then' in response ? response : [response])).pipe(
    mergeMap((answer) => (answer.status >= 400 ? refusalOf(answer) : linesOf(answer.bytes, limit))),
  );
}

/** Errors with what the provider said of a refused request. */
function refusalOf(answer: Upstream): Observable<never> {
  return answer.bytes.pipe(
    reduce((held, piece) => {
      held.push(piece.subarray(0, errorLimit - held.length));
      return held;
    }, new HeldBytes()),
    mergeMap((held) => throwError(() => new ProviderRefusal(answer, held.take()))),
  );
}

function linesOf(bytes: Observable<Buffer>, limit: number): Observable<JsonObject> {
  const held = new HeldBytes();
  // The last line may come without its end.
  return concat(bytes, of(Buffer.from('\n'))).pipe(concatMap((piece) => cut(piece, held, limit)));
}

/** Returns the lines that end in a piece, and holds the beginning of the next one. */
function cut(piece: Buffer, held: HeldBytes, limit: number): readonly JsonObject[] {
  const lines: JsonObject[] = [];
  let start = 0;
  for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
    hold(piece.subarray(start, end), held, limit);
    start = end + 1;
    const text = held.take().toString('utf8').trim();
    if (text !== '') lines.push(parseLine(text));
  }
  hold(piece.subarray(start), held, limit);
  return lines;
}

function hold(piece: Buffer, held: HeldBytes, limit: number): void {
  if (held.length + piece.length > limit)
    throw failed(`sent a line of more than ${limit} bytes, the limit for this response`);
  held.push(piece);
}

function parseLine(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw failed('sent a line that is not JSON');
  }
  if (!isObject(value)) throw failed('sent a line that is not a JSON object');
  return value;
}

function failed(what: string): GatewayError {
  return new GatewayError('upstream_error', `The upstream ${what}.`, { origin: 'upstream' });
}
