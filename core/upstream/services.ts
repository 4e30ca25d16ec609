import { request as requestBy } from './undici.ts';
import { openConnections } from './connections.ts';
import { parseJson } from '../model/json.ts';
import type { ServiceAnswer, Services } from '../sdk/author/tools.ts';
import { WholeBytes } from '../sdk/whole-bytes.ts';

/** Milliseconds, and bytes, of an answer unless a plugin says otherwise. */
const ordinary = { timeout: 10_000, limit: 4 * 1024 * 1024 };

/** Opens the connections over which plugins ask services that operators name. */
export function openServices(): Services & { close(): Promise<void> } {
  const connections = openConnections({ connectTimeout: 5_000, idleTimeout: 60_000 });
  return {
    async ask({ url, json, method, headers = {}, signal, ...rest }) {
      const { timeout, limit } = { ...ordinary, ...rest };
      const { origin, pathname, search, host, protocol } = new URL(url);
      if (protocol !== 'http:' && protocol !== 'https:')
        throw new Error(`A service is asked over http or https, not over ${protocol}`);
      const body = rest.body ?? (json === undefined ? undefined : JSON.stringify(json));
      const deadline = AbortSignal.timeout(timeout);
      try {
        const answer = await requestBy.call(connections.to(origin, false), {
          path: pathname + search,
          method: method ?? (body === undefined ? 'GET' : 'POST'),
          headers: {
            ...(rest.body === undefined && json !== undefined ? { 'content-type': 'application/json' } : {}),
            ...headers,
          },
          ...(body === undefined ? {} : { body }),
          signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
        });
        const whole = new WholeBytes(limit);
        // Leaving the loop closes the connection.
        for await (const piece of answer.body as AsyncIterable<Buffer>) whole.push(piece);
        return answered(answer.statusCode, answer.headers, whole.take());
      } catch (error) {
        const why = deadline.aborted
          ? `it did not answer within ${timeout} ms`
          : error instanceof Error
            ? error.message.replace(/\.$/, '')
            : String(error);
        throw new Error(`The service at ${host} could not be asked: ${why}.`, { cause: error });
      }
    },
    close: () => connections.close(),
  };
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
