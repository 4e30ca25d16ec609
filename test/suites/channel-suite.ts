import { type Target, type Call } from '../../core/sdk/call.ts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ServerResponse } from 'node:http';
import { Exchange } from '../../core/call/exchange.ts';
import { firstView } from '../../core/call/view.ts';
import type { Upstream, UpstreamRequest } from '../../core/sdk/channel.ts';
import type { ChannelKind, ChannelOptions, ChannelParts } from '../../core/sdk/define.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { Codec, Format, Operation } from '../../core/sdk/format.ts';
import { createHttpClient } from '../../core/upstream/send.ts';
import { type HttpClient } from '../../core/sdk/http.ts';
import { createLog } from '../../core/log.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/** A channel kind under test; the options a config would give go into `ChannelExpectations`. */
type Kind = Pick<ChannelKind, 'spec'>;

/** What one channel kind promises beyond what all promise. */
export interface ChannelExpectations {
  /** Below the scripted provider's address: `/v1` unless the kind's base URL has another path. */
  readonly basePath?: string;
  /** The format of the requests below. */
  readonly format: string;
  /** A path as the format's codec writes it, and the URL the provider must see. */
  readonly path: string;
  readonly url: string;
  readonly query?: Readonly<Record<string, string>>;
  /** The headers that must carry the key `KEY`. Empty: none may. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Other headers the provider must see. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The kind's base URL when the config gives none. */
  readonly baseUrl: string;
  /** A public model name that the kind serves unasked, and what its traits must say. */
  readonly models: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly options?: Readonly<Record<string, unknown>>;
}

const key = 'test-key-0123456789abcdef';
const otherKey = 'test-key-of-another-account';
const requestBody = '{"model":"m","text":"h\u00e9llo \u{1F600}"}';
const wholeBody = '{"answer":"w\u00f6rld"}';
const frames = ['data: {"n":1}\n\n', 'data: {"n":2,"text":"\u{1F600}"}\n\n', 'data: [DONE]\n\n'];
const idleTimeout = 300;
const silent = (): void => {};

/** The promises of every channel that reaches a provider over HTTP, against a provider that does as it is told. */
export function channelSuite(kind: Kind, expected: ChannelExpectations): void {
  describe(`the ${kind.spec.name} channel`, () => {
    let upstream: ScriptedUpstream;
    let http: HttpClient;
    let script: (request: SeenRequest, response: ServerResponse) => void | Promise<void> = silent;
    const lines: string[] = [];
    const log = createLog('trace', { write: (line: string) => void lines.push(line) });
    const exchanges: Exchange[] = [];

    beforeAll(async () => {
      upstream = await startUpstream((request, response) => script(request, response));
      http = createHttpClient({ connectTimeout: 2000, idleTimeout });
    });
    afterEach(() => {
      for (const exchange of exchanges.splice(0)) exchange.end();
      upstream.requests.length = 0;
    });
    afterAll(async () => {
      await http.close();
      await upstream.close();
    });

    const setup = (options: ChannelOptions): ChannelParts => {
      const keys = options.keys ?? (options.key === undefined ? [] : [options.key]);
      return kind.spec.setup(
        { ...kind.spec.options?.parse(expected.options ?? {}), ...options },
        { log, keys, http, onClose: () => {} },
      );
    };
    const parts = (options: ChannelOptions = { key }): ChannelParts =>
      setup({ baseUrl: upstream.url + (expected.basePath ?? '/v1'), ...options });
    const newCall = (): { call: Call; exchange: Exchange } => {
      const made = testCall();
      exchanges.push(made.exchange);
      return made;
    };
    const send = (stream: boolean, options?: ChannelOptions): Promise<Upstream> =>
      parts(options).open(newCall().call, requestOf(expected, stream));

    it('sends a request to the right place, with its own key and the body untouched', async () => {
      script = (_, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(wholeBody);
      const answer = await send(false);
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe('application/json');
      expect((await all(answer)).toString()).toBe(wholeBody);

      const [seen] = upstream.requests;
      expect(seen?.method).toBe('POST');
      expect(seen?.url).toBe((expected.basePath ?? '/v1') + expected.url);
      expect(seen?.body.toString()).toBe(requestBody);
      expect(seen?.headers).toMatchObject({
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        ...expected.headers,
        ...withKey(expected.credentials, key),
      });
      expect(seen?.headers['user-agent']).toMatch(/^sluice\/\d/);
      expect(seen?.headers['x-test-version']).toBe('7');
    });

    it('shows the key nowhere but in its header', async () => {
      script = (_, response) => void response.writeHead(500).end('{}');
      await all(await send(false));
      const [seen] = upstream.requests;
      const carriers = Object.entries(seen?.headers ?? {}).filter(([, value]) => String(value).includes(key));
      expect(carriers.map(([name]) => name).toSorted()).toEqual(Object.keys(expected.credentials).toSorted());
      expect(seen?.url).not.toContain(key);
      expect(lines.join('')).not.toContain(key);
    });

    it('asks for a stream and passes it on as it comes', async () => {
      let finish: (() => void) | undefined;
      script = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames[0]);
        finish = (): void => void response.end(frames.slice(1).join(''));
      };
      const answer = await send(true);
      expect(upstream.requests[0]?.headers.accept).toBe('text/event-stream');
      const seen: string[] = [];
      await new Promise<void>((resolve, reject) => {
        answer.bytes.subscribe({
          next(bytes) {
            seen.push(bytes.toString());
            if (seen.length === 1) finish?.();
          },
          error: reject,
          complete: resolve,
        });
      });
      expect(seen[0]).toBe(frames[0]);
      expect(seen.join('')).toBe(frames.join(''));
    });

    it.each([429, 500])('passes a %i on with its headers and body', async (status) => {
      script = (_, response) =>
        void response.writeHead(status, { 'retry-after': '2' }).end('{"error":{"message":"no"}}');
      const answer = await send(true);
      expect(answer.status).toBe(status);
      expect(answer.headers['retry-after']).toBe('2');
      expect((await all(answer)).toString()).toBe('{"error":{"message":"no"}}');
    });

    it('passes an error on that comes after a 200', async () => {
      const failure = 'data: {"error":{"message":"overloaded"}}\n\n';
      script = (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames[0] + failure);
      expect((await all(await send(true))).toString()).toBe(frames[0] + failure);
    });

    it('says that a stream was cut in the middle of a frame', async () => {
      script = async (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`${frames[0]}data: {"n`);
        await new Promise((resolve) => setTimeout(resolve, 30));
        response.destroy();
      };
      const { bytes, error } = await outcome(await send(true));
      expect(bytes.toString()).toBe(`${frames[0]}data: {"n`);
      expect(error).toMatchObject({ code: 'upstream_cut', origin: 'upstream', retryable: true });
    });

    it('gives up on a provider that stays silent', async () => {
      script = silent;
      await expect(send(true)).rejects.toMatchObject({ code: 'upstream_timeout', origin: 'upstream' });
      script = (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames[0]);
      const { error } = await outcome(await send(true));
      expect(error).toMatchObject({ code: 'upstream_timeout', origin: 'upstream' });
    });

    it('says nothing of addresses and keys when there is nobody', async () => {
      const nobody = parts({ key, baseUrl: 'http://127.0.0.1:9/v1' });
      const failure: unknown = await nobody
        .open(newCall().call, requestOf(expected, false))
        .catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(GatewayError);
      expect(failure).toMatchObject({ origin: 'upstream', retryable: true });
      expect((failure as GatewayError).message).not.toMatch(/127\.0\.0\.1|test-key/);
    });

    it('lets go of the provider when the client leaves', async () => {
      script = (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames[0]);
      const answer = await send(true);
      await new Promise<void>((resolve) => {
        const subscription = answer.bytes.subscribe(() => {
          setImmediate(() => subscription.unsubscribe());
          resolve();
        });
      });
      await upstream.requests[0]?.closed;

      script = silent;
      const { call, exchange } = newCall();
      const waiting = parts().open(call, requestOf(expected, true));
      // oxlint-disable-next-line no-await-in-loop -- until the provider has it
      while (upstream.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      exchange.end();
      await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
      await upstream.requests[1]?.closed;
    });

    it('uses the key that the target names', async () => {
      script = (_, response) => void response.writeHead(200).end('{}');
      const channel = parts({ keys: [key, otherKey] });
      const toKey = (index: number): Call =>
        newCall().call.with({ target: { key: { id: `${index}`, index } } as Target });
      /* oxlint-disable no-await-in-loop -- one after the other: the order is what is tested */
      for (const index of [0, 1, 1, 0])
        await all(await channel.open(toKey(index), requestOf(expected, false)));
      /* oxlint-enable no-await-in-loop */
      const [name] = Object.keys(expected.credentials);
      if (name === undefined) return;
      const first = withKey(expected.credentials, key)[name];
      const second = withKey(expected.credentials, otherKey)[name];
      expect(upstream.requests.map(({ headers }) => headers[name])).toEqual([first, second, second, first]);
    });

    it('goes to its own provider when the config names no other', async () => {
      const urls: string[] = [];
      const fake: HttpClient = {
        send: (_, request) => {
          urls.push(request.url);
          return Promise.reject(new GatewayError('upstream_error', 'not today'));
        },
        read: () => Promise.reject(new GatewayError('upstream_error', 'not today')),
        close: () => Promise.resolve(),
      };
      const channel = kind.spec.setup(
        { ...kind.spec.options?.parse(expected.options ?? {}), key },
        {
          log,
          keys: [key],
          http: fake,
          onClose: () => {},
        },
      );
      await channel.open(newCall().call, requestOf(expected, false)).catch(() => {});
      expect(urls).toEqual([expected.baseUrl + expected.url]);
    });

    it('speaks its format for chat', () => {
      expect(parts().speaks.chat).toContain(expected.format);
    });

    it.each(Object.entries(expected.models))('knows %s', (model, traits) => {
      const { models } = kind.spec;
      expect(models === 'discover' || models?.some((pattern) => fits(pattern, model))).toBe(true);
      expect(parts().traits?.(model)).toMatchObject(traits);
    });
  });
}

/** A call as a channel sees it, for tests that open channels without a gateway. End its exchange when done. */
export function testCall(id = 'req_test'): { call: Call; exchange: Exchange } {
  const wire = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    params: {},
    ip: '127.0.0.1',
    bytes: Buffer.alloc(0),
    body: {},
  };
  const exchange = new Exchange(id, 'chat', {} as Format, {} as Codec, wire);
  return { call: firstView(exchange), exchange };
}

/** Everything that a reply's body holds. */
export async function all(upstream: Upstream): Promise<Buffer> {
  const { bytes, error } = await outcome(upstream);
  if (error !== undefined) throw error;
  return bytes;
}

/** What a reply's body held, and the error it ended with. */
export function outcome(upstream: Upstream): Promise<{ bytes: Buffer; error?: unknown }> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    upstream.bytes.subscribe({
      next: (bytes) => void chunks.push(bytes),
      error: (error: unknown) => resolve({ bytes: Buffer.concat(chunks), error }),
      complete: () => resolve({ bytes: Buffer.concat(chunks) }),
    });
  });
}

function requestOf(
  expected: ChannelExpectations,
  stream: boolean,
  operation: Operation = 'chat',
): UpstreamRequest {
  return {
    operation,
    format: expected.format,
    model: 'm',
    stream,
    path: expected.path,
    query: expected.query ?? {},
    headers: { 'x-test-version': '7' },
    body: Buffer.from(requestBody),
  };
}

function withKey(credentials: Readonly<Record<string, string>>, value: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(credentials).map(([name, text]) => [name, text.replace('KEY', value)]),
  );
}

function fits(pattern: string, model: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(model);
}
