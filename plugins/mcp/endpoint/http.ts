/** Requests and responses of the endpoint, between the gateway's calls and the web-standard objects of the SDK. */
import { Observable } from 'rxjs';
import { addReplyHeaders, GatewayError, type Call, type GatewayEvent } from 'sluice';

/** Names of this machine, whose pages may use the endpoint. */
const localHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Throws 403 for a request from a web page that is not allowed. A page whose name was made to lead to this machine sends its own origin, so
 * that the name in `host` says nothing.
 */
export function checkOrigin({ wire }: Call, origins: readonly string[]): void {
  const { origin } = wire.headers;
  if (origin === undefined) return;
  const url = URL.parse(origin);
  if (
    url !== null &&
    (localHosts.has(url.hostname) || origins.some((one) => new URL(one).origin === url.origin))
  )
    return;
  throw new GatewayError('forbidden', 'Web pages of this origin may not use this endpoint.');
}

/** Returns the request of a call. Its body is read already: the SDK gets it parsed. */
export function requestOf({ wire, signal }: Call): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(wire.headers))
    if (value !== undefined && name !== 'content-length') headers.set(name, String(value));
  return new Request(`http://gateway${wire.path}`, {
    method: wire.method,
    headers,
    signal,
    ...(wire.method === 'POST' ? { body: '' } : {}),
  });
}

/** Streams that last until somebody ends them. */
export class OpenStreams {
  readonly #ends = new Set<() => void>();

  /** Registers a stream until the returned function is called. */
  add(end: () => void): () => void {
    this.#ends.add(end);
    return () => void this.#ends.delete(end);
  }

  /** Ends all, because the gateway takes no more calls. */
  endAll(): void {
    for (const end of this.#ends) end();
  }
}

/** Returns true for a request whose response is a stream of notifications without an end. */
export function isEndless(method: string, body: unknown): boolean {
  return (
    method === 'GET' ||
    (typeof body === 'object' && body !== null && 'method' in body && body.method === 'subscriptions/listen')
  );
}

/** Watches how fast a client reads. */
export interface ReadingWatch {
  opened(): void;
  congested(isFull: boolean): void;
  closed(): void;
}

/** Returns the events of a response. Reading follows the call's gate, and ends with the call. */
export function eventsOf(
  call: Call,
  response: Response,
  watch?: ReadingWatch,
  endless?: OpenStreams,
): Observable<GatewayEvent> {
  const { status, headers, body } = response;
  const added = Object.fromEntries(
    [...headers].filter(
      ([name]) => name !== 'content-type' && name !== 'content-length' && name !== 'connection',
    ),
  );
  const type = headers.get('content-type');
  addReplyHeaders(call, {
    ...added,
    ...(type?.startsWith('text/event-stream') ? { 'x-accel-buffering': 'no' } : {}),
  });
  return new Observable((subscriber) => {
    watch?.opened();
    subscriber.next({ type: 'answer', status, headers: type === null ? {} : { 'content-type': type } });
    const reader = body?.getReader();
    const forget = endless?.add(() => {
      subscriber.complete();
      reader?.cancel().catch(() => undefined);
    });
    let isCongested = false;
    const congested = (isFull: boolean): void => {
      if (isCongested !== isFull) watch?.congested(isFull);
      isCongested = isFull;
    };
    const read = async (): Promise<void> => {
      for (;;) {
        const opened = call.gate.opened();
        if (opened !== undefined) {
          congested(true);
          await opened;
          congested(false);
        }
        const piece = await reader?.read();
        if (piece === undefined || piece.done) break;
        subscriber.next({ type: 'bytes', bytes: Buffer.from(piece.value) });
      }
      subscriber.complete();
    };
    read().catch((error: unknown) => subscriber.error(error));
    return () => {
      forget?.();
      // The gate of a client that has left does not open.
      congested(false);
      watch?.closed();
      reader?.cancel().catch(() => undefined);
    };
  });
}
