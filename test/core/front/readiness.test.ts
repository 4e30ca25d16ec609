import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Front } from '../../../core/front/front.ts';
import { readinessRoute } from '../../../core/front/readiness.ts';
import type { Call } from '../../../core/sdk/call.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Format } from '../../../core/sdk/format.ts';

interface State {
  readonly announced?: boolean;
  readonly stopping?: boolean;
  readonly shared?: string;
  readonly database?: () => Promise<void>;
  readonly operators?: readonly (() => Promise<boolean>)[];
}

const key = 'sk-right';
/** Calls that were asked about, and those of them that have ended. */
const probedCalls: Call[] = [];
const ended: string[] = [];

/** Returns the response of `/readyz` in a state. */
async function readyz(
  state: State = {},
  headers: Readonly<Record<string, string>> = {},
  query = '',
): Promise<{ readonly status: number; readonly body: unknown }> {
  const front = {
    announced: false,
    stopping: false,
    ...state,
    formatNamed: () => ({ name: 'chat-completions', errorReply: () => ({}) }) as unknown as Format,
    clientAddress: () => '192.0.2.7',
    parts: {
      stores: { health: state.database ?? (() => Promise.resolve()) },
      rates: { state: state.shared ?? 'ok' },
      health: { report: () => [] },
      upkeep: { warned: [{ what: 'usage-records' }] },
    },
    gateway: {
      operators: state.operators ?? [],
      catalog: { channels: [] },
      identified: (terminal: (call: Call) => unknown) => (call: Call) => {
        probedCalls.push(call);
        call.onEnd(() => ended.push(call.id));
        const { headers: sent, query: given } = call.wire;
        if (sent.authorization !== `Bearer ${key}` && given.get('key') !== key)
          return Promise.reject(new GatewayError('invalid_api_key', 'Unknown key.'));
        return terminal(call);
      },
    },
  } as unknown as Front;
  probedCalls.length = 0;
  ended.length = 0;
  const koa = new Koa().use(readinessRoute(front));
  const server = createServer(koa.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/readyz${query}`, {
    headers: { connection: 'close', ...headers },
  });
  return { status: response.status, body: await response.json() };
}

const failing = (): Promise<never> => Promise.reject(new Error('the disk is gone'));

describe('/readyz', () => {
  test.each([
    ['all is well', {}, 200, { status: 'ready', database: 'ok', shared: 'ok' }],
    [
      'the database fails',
      { database: failing },
      503,
      { status: 'not ready', database: 'failed', shared: 'ok' },
    ],
    ['a stop is announced', { announced: true }, 503, { status: 'draining', database: 'ok', shared: 'ok' }],
    ['the gateway stops', { stopping: true }, 503, { status: 'draining', database: 'ok', shared: 'ok' }],
    [
      'the gateway stops and the database fails',
      { stopping: true, database: failing },
      503,
      { status: 'draining', database: 'failed', shared: 'ok' },
    ],
    [
      'limits are not shared',
      { shared: 'failed' },
      200,
      { status: 'ready', database: 'ok', shared: 'failed' },
    ],
  ] as const)('says so when %s', async (_what, state, status, body) => {
    expect(await readyz(state)).toEqual({ status, body });
    expect(probedCalls).toEqual([]);
  });

  test('names channels to a caller whose key is right, in a header or in the query', async () => {
    for (const [headers, query] of [
      [{ authorization: `Bearer ${key}` }, ''],
      [{}, `?key=${key}`],
      [{}, `?a=b&key=${key}`],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop
      const { body } = await readyz({}, headers, query);
      expect(body).toHaveProperty('channels', []);
      expect(body).toHaveProperty('warnings', ['usage-records']);
      expect(probedCalls).toHaveLength(1);
      expect([
        probedCalls[0]?.operation,
        probedCalls[0]?.wire.method,
        probedCalls[0]?.wire.path,
        probedCalls[0]?.wire.ip,
      ]).toEqual(['state', 'GET', '/readyz', '192.0.2.7']);
      expect(ended).toEqual([probedCalls[0]?.id]);
    }
  });

  test.each(['authorization', 'x-api-key', 'x-goog-api-key', 'x-g-api-key', 'api-key'])(
    'asks about a key in %s, and names no channel where it is wrong',
    async (name) => {
      const { status, body } = await readyz({}, { [name]: 'wrong' });
      expect([status, body]).toEqual([200, { status: 'ready', database: 'ok', shared: 'ok' }]);
      expect([probedCalls.length, ended.length]).toEqual([1, 1]);
    },
  );

  test('asks nobody about a request that shows no key', async () => {
    await readyz({}, { cookie: 'a=b' }, '?monkey=1');
    expect(probedCalls).toEqual([]);
  });

  test('names channels to the operator, whoever recognizes one, and nobody fails where one cannot tell', async () => {
    const yes = (): Promise<boolean> => Promise.resolve(true);
    const no = (): Promise<boolean> => Promise.resolve(false);
    expect((await readyz({ operators: [no, failing, yes] })).body).toHaveProperty('channels');
    expect((await readyz({ operators: [no, failing] })).body).not.toHaveProperty('channels');
    expect(probedCalls).toEqual([]);
  });
});
