/** Marks response bodies that a channel passes through unchanged, and removes headers such as `content-length` from changed ones. */
import { Observable } from 'rxjs';
import type { Upstream } from './channel.ts';

/**
 * A body to which the headers beside it apply: its length, its range, its validators. The HTTP client returns such bodies. Operators return
 * plain observables, so that a body that a channel has changed does not have this class.
 *
 * @example
 * return { status: 200, headers: { 'content-length': '5' }, bytes: new ExactBytes((subscriber) => of(hello).subscribe(subscriber)) };
 */
export class ExactBytes extends Observable<Buffer> {}

/** Headers that describe the bytes of one body. `transfer-encoding` stays because it describes the connection, and is never passed on. */
const describing: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'etag',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);

/** Returns the headers of a body whose bytes were changed: without those that describe the bytes before. */
export function headersOfChangedBytes(headers: Upstream['headers']): Upstream['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !describing.has(name)));
}

/** Returns a response whose headers apply to its bytes. */
export function withTrueHeaders(answer: Upstream): Upstream {
  if (answer.bytes instanceof ExactBytes) return answer;
  return { ...answer, headers: headersOfChangedBytes(answer.headers) };
}
