/** The gateway's own `fetch` for the SDK: over kept-alive connections, with bounds on bytes and time. */
import type { FetchLike } from '@modelcontextprotocol/client';
import type { Services, ServiceStream } from 'sluice';

/** Bounds of the requests to one server. */
export interface FetchBounds {
  /** Timeout in milliseconds of the response to a POST or DELETE. The stream of a GET has none. */
  readonly timeoutMs: number;
  /** Maximum number of bytes of a response, or of one event where the response is a stream. */
  readonly maxBytes: number;
}

/** Statuses whose response has no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** Returns a fetch that never follows a redirect and stops reading at its bounds. */
export function boundedFetch(http: Pick<Services, 'open'>, bounds: FetchBounds): FetchLike {
  return async function fetchBounded(url, init = {}) {
    const { signal: given, ...rest } = init;
    const request = new Request(url, rest);
    const text = request.body === null ? undefined : await request.text();
    const ends = request.method === 'GET' ? [] : [AbortSignal.timeout(bounds.timeoutMs)];
    if (given) ends.push(given);
    const opened = await http.open({
      url: request.url,
      method: request.method as 'GET' | 'POST' | 'DELETE',
      headers: Object.fromEntries(request.headers),
      ...(text === undefined ? {} : { body: text }),
      timeout: bounds.timeoutMs,
      ...(ends.length === 0 ? {} : { signal: AbortSignal.any(ends) }),
    });
    const { status, headers, body } = opened;
    const isStream = /^text\/event-stream\b/i.test(String(headers['content-type'] ?? ''));
    const counted =
      status < 400 || isStream ? bounded(body, bounds.maxBytes, isStream) : beginningOf(body, opened);
    const bytes = isStream && text !== undefined ? answered(counted, text) : counted;
    const isBodiless = bodiless.has(status);
    if (isBodiless) await finished(bytes, opened);
    return new Response(isBodiless ? null : streamOf(bytes, opened), { status, headers: flat(headers) });
  };
}

/** Passes chunks on until there are too many bytes: of all, or of one event. */
async function* bounded(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  isStream: boolean,
): AsyncGenerator<Uint8Array> {
  const events = new EventLengths();
  let length = 0;
  for await (const chunk of body) {
    length = isStream ? events.longest(chunk) : length + chunk.length;
    if (length > maxBytes) throw new Error(`The response is longer than ${maxBytes} bytes.`);
    yield chunk;
  }
}

/** Maximum number of bytes of a response with an error status: the SDK quotes it in errors, which are logged. */
const maxErrorBytes = 8_192;

/** Passes the beginning of a response on, and closes one that is longer. */
async function* beginningOf(body: AsyncIterable<Buffer>, opened: ServiceStream): AsyncGenerator<Uint8Array> {
  let left = maxErrorBytes;
  for await (const chunk of body) {
    if (chunk.length > 0) yield chunk.subarray(0, left);
    left -= chunk.length;
    if (left > 0) continue;
    opened.close();
    return;
  }
}

const lineFeed = 10;
const carriageReturn = 13;

/** Counts the bytes of each event of a stream. An event ends with an empty line, and a line with CR, LF or both. */
class EventLengths {
  #length = 0;
  #isLineEmpty = true;
  #isAfterReturn = false;

  /** Adds a chunk. Returns the size in bytes so far of the longest event that has a part in the chunk. */
  longest(chunk: Uint8Array): number {
    let longest = 0;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index];
      const isSecondHalf = byte === lineFeed && this.#isAfterReturn;
      this.#isAfterReturn = byte === carriageReturn;
      this.#length += 1;
      if (isSecondHalf) continue;
      const endsLine = byte === lineFeed || byte === carriageReturn;
      if (endsLine && this.#isLineEmpty) {
        longest = Math.max(longest, this.#length);
        this.#length = 0;
      }
      this.#isLineEmpty = endsLine;
    }
    return Math.max(longest, this.#length);
  }
}

/**
 * Ends a stream that breaks, or ends without an answer, with an error for its request: the SDK would wait for the answer until the time of
 * the request is over. A stream with event ids is left alone, because it can be resumed.
 */
async function* answered(bytes: AsyncIterable<Uint8Array>, request: string): AsyncGenerator<Uint8Array> {
  let hasIds = false;
  let why = 'The server ended its response without a result.';
  try {
    for await (const chunk of bytes) {
      hasIds ||= /(?:^|[\r\n])id:/.test(
        Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1'),
      );
      yield chunk;
    }
  } catch (error) {
    if (hasIds) throw error;
    why = error instanceof Error ? error.message : why;
  }
  const id = hasIds ? undefined : requestId(request);
  if (id === undefined) return;
  const error = { jsonrpc: '2.0', id, error: { code: -32000, message: why } };
  yield Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(error)}\n\n`);
}

function requestId(request: string): string | number | undefined {
  try {
    const { id } = JSON.parse(request) as { readonly id?: unknown };
    return typeof id === 'string' || typeof id === 'number' ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the end of a response that has no body. Closes the response when it sends one nevertheless. */
async function finished(bytes: AsyncGenerator<Uint8Array>, opened: ServiceStream): Promise<void> {
  const { done } = await bytes.next();
  if (done !== true) opened.close();
}

/** Returns the bytes as a stream. Its cancellation closes the response, also before anything of it was read. */
function streamOf(bytes: AsyncGenerator<Uint8Array>, opened: ServiceStream): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const read = await bytes.next();
        if (read.done === true) controller.close();
        else controller.enqueue(read.value);
      },
      async cancel() {
        opened.close();
        await bytes.return(undefined).catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const joined = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) joined.append(name, one);
  return joined;
}
