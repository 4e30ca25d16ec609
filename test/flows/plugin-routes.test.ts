import { request } from 'node:http';
import { Readable } from 'node:stream';
import { definePlugin, GatewayError, type RouteHandler } from 'sluice';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/** Handlers of a plugin's routes by path below `/mine`. */
const handlers: Readonly<Record<string, RouteHandler>> = {
  '/hello/:name'(ctx) {
    ctx.body = { hello: ctx.params['name'], loud: ctx.query['loud'] };
  },
  '/files/*path'(ctx) {
    ctx.type = 'text';
    ctx.body = Readable.from(['the ', 'file ', ctx.params['path'] ?? '']);
  },
  async '/refused'() {
    throw new GatewayError('rate_limit_exceeded', 'Later, please.', { headers: { 'x-later': 'yes' } });
  },
  '/thrown': (ctx) => ctx.throw(422, 'That is no color.'),
  '/exposed'(ctx) {
    const status = ctx.query['status'] === 'odd' ? { status: 'odd' } : {};
    throw Object.assign(new Error('Say it otherwise.'), { expose: true, ...status });
  },
  '/hidden'() {
    throw Object.assign(new Error('the secret of the plugin'), { expose: false, status: 503 });
  },
  '/broken'(ctx) {
    ctx.type = 'html';
    throw new Error('the secret of the plugin');
  },
  async '/halfway'(ctx) {
    ctx.respond = false;
    await new Promise((written) => ctx.res.write('so far', written));
    throw new Error('and no further');
  },
  '/failing-stream'(ctx) {
    ctx.body = new Readable({
      read() {
        this.destroy(new Error('the disk is gone'));
      },
    });
  },
};

let gateway: TestGateway;

beforeAll(async () => {
  const mine = definePlugin({
    name: 'mine',
    stage: 'observe',
    setup(_options, { route }) {
      for (const [path, handler] of Object.entries(handlers))
        for (const method of ['GET', 'POST'] as const) route(method, `/mine${path}`, handler);
      return (call, next) => next(call);
    },
  });
  gateway = await startGateway({ plugins: [mine()] });
});
afterAll(() => gateway.close());

const fetchOwn = (path: string): Promise<Response> => fetch(`${gateway.url}/mine${path}`);

/** Returns the log lines of a plugin's failures. */
const failures = (): unknown[] =>
  gateway.lines.filter(({ plugin }) => plugin === 'mine').map(({ error }) => JSON.stringify(error));

describe("a plugin's own route", () => {
  test('answers with what it leaves in its context: objects, texts, streams', async () => {
    const hello = await fetchOwn('/hello/Ann%20Lee?loud=very');
    expect(hello.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await hello.json()).toEqual({ hello: 'Ann Lee', loud: 'very' });
    expect(await (await fetchOwn('/files/a/b.txt')).text()).toBe('the file a/b.txt');
  });

  test('refuses with a status, a sentence and headers', async () => {
    const refused = await fetchOwn('/refused');
    expect([refused.status, refused.headers.get('x-later')]).toEqual([429, 'yes']);
    expect(await refused.json()).toMatchObject({ error: { message: 'Later, please.' } });
    const thrown = await fetchOwn('/thrown');
    expect(thrown.status).toBe(422);
    expect(await thrown.json()).toMatchObject({ error: { message: 'That is no color.' } });
    for (const query of ['', '?status=odd']) {
      // oxlint-disable-next-line no-await-in-loop
      const exposed = await fetchOwn(`/exposed${query}`);
      expect(exposed.status).toBe(400);
      // oxlint-disable-next-line no-await-in-loop
      expect(await exposed.json()).toMatchObject({ error: { message: 'Say it otherwise.' } });
    }
    expect(failures()).toEqual([]);
    const hidden = await fetchOwn('/hidden');
    expect(hidden.status).toBe(500);
    expect(await hidden.text()).not.toContain('secret');
  });

  test('that fails is a 500 for its caller, who is told nothing, and stands in the log', async () => {
    const broken = await fetchOwn('/broken');
    expect(broken.status).toBe(500);
    expect(broken.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await broken.text()).not.toContain('secret');
    expect(failures()).toContainEqual(expect.stringContaining('the secret of the plugin'));
  });

  test('that fails in the middle of its answer cuts it off', async () => {
    const halfway = await fetchOwn('/halfway');
    await expect(halfway.text()).rejects.toThrow(TypeError);
    expect(failures()).toContainEqual(expect.stringContaining('and no further'));
  });

  test('whose stream fails cuts it off too', async () => {
    await expect(fetchOwn('/failing-stream').then((answer) => answer.text())).rejects.toThrow(TypeError);
    expect(JSON.stringify(gateway.lines)).toContain('the disk is gone');
  });

  test('that refuses an upload does not wait for the rest of it', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const upload = request(`${gateway.url}/mine/refused`, {
      method: 'POST',
      headers: { 'content-length': 100_000_000 },
    });
    upload.on('error', reject);
    upload.on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    upload.write('the beginning');
    expect(await promise).toBe(429);
    // The gateway closes the connection by itself.
    upload.off('error', reject).on('error', () => {});
    await new Promise((closed) => upload.once('close', closed));
  });
});
