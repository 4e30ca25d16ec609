import { EventEmitter } from 'node:events';
import type * as undici from 'undici';
import { request as requestBy } from '../performance/undici.ts';
import { openConnections } from './connections.ts';
import { parseJson } from '../json/parse.ts';
import type { ServiceAnswer, ServiceRequest, Services } from '../sdk/author/services.ts';
import { WholeBytes } from '../sdk/whole-bytes.ts';

/** Default timeout in milliseconds, and default maximum size of a response in bytes. */
const ordinary = { timeout: 10_000, limit: 4 * 1024 * 1024 };

/** Opens the HTTP client with which plugins call services that operators configure. */
export function openServices(): Services & { close(): Promise<void> } {
  const connections = openConnections({ connectTimeout: 5_000, idleTimeout: 60_000 });
  const send = (
    { url, json, method, headers = {}, ...rest }: ServiceRequest,
    limits: Pick<undici.Dispatcher.RequestOptions, 'signal' | 'headersTimeout' | 'bodyTimeout'>,
  ) => {
    const { origin, pathname, search, protocol } = new URL(url);
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new Error(`A service must have an http or https URL, not ${protocol}`);
    const body = rest.body ?? (json === undefined ? undefined : JSON.stringify(json));
    return requestBy.call(connections.to(origin, false), {
      path: pathname + search,
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(rest.body === undefined && json !== undefined ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...limits,
    });
  };
  return {
    async ask({ signal, ...request }) {
      const { timeout, limit } = { ...ordinary, ...request };
      const deadline = AbortSignal.timeout(timeout);
      try {
        const answer = await send(request, { signal: either(signal, deadline) });
        const whole = new WholeBytes(limit);
        // Leaving the loop closes the connection.
        for await (const piece of answer.body as AsyncIterable<Buffer>) whole.push(piece);
        return answered(answer.statusCode, answer.headers, whole.take());
      } catch (error) {
        throw requestError(request.url, deadline.aborted, timeout, error);
      }
    },
    async open({ signal, ...request }) {
      const { timeout = ordinary.timeout } = request;
      // undici accepts an emitter in place of an AbortSignal.
      const stop: EventEmitter & { reason?: unknown } = new EventEmitter();
      const leave = (reason: unknown): void => {
        stop.reason = reason;
        stop.emit('abort');
      };
      const left = (): void => leave(signal?.reason);
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        leave(undefined);
      }, timeout);
      signal?.addEventListener('abort', left, { once: true });
      const forget = (): void => signal?.removeEventListener('abort', left);
      try {
        signal?.throwIfAborted();
        const { statusCode, headers, body } = await send(request, {
          signal: stop,
          headersTimeout: 0,
          bodyTimeout: 0,
        });
        body.once('close', forget);
        return {
          status: statusCode,
          headers,
          body: body as AsyncIterable<Buffer>,
          close: () => leave(undefined),
        };
      } catch (error) {
        forget();
        throw requestError(request.url, isLate, timeout, error);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => connections.close(),
  };
}

function either(signal: AbortSignal | undefined, deadline: AbortSignal): AbortSignal {
  return signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
}

/** Returns the error that names the host and nothing else of the address. */
function requestError(url: string, isLate: boolean, timeout: number, error: unknown): Error {
  const why = isLate
    ? `it did not respond within ${timeout} ms`
    : error instanceof Error
      ? error.message.replace(/\.$/, '')
      : String(error);
  return new Error(`The service at ${new URL(url).host} could not be reached: ${why}.`, { cause: error });
}

function answered(status: number, headers: ServiceAnswer['headers'], bytes: Buffer): ServiceAnswer {
  return {
    status,
    headers,
    bytes,
    text: () => bytes.toString(),
    json: () => parseJson(bytes.toString()),
  };
}
