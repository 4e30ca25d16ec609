import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import anthropic from '../../channels/anthropic.ts';
import sessionAffinity from '../../plugins/session-affinity.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type Json = Readonly<Record<string, unknown>>;

/** Which key was shown with each request that was answered, in order. */
let served: string[] = [];
/** Status for calls of a key instead of a reply. */
let down: Record<string, number> = {};
/** Pieces of encrypted reasoning that came with each answered request. */
let seals: string[][] = [];
let upstream: ScriptedUpstream;
let gateways: TestGateway[] = [];

beforeEach(async () => {
  served = [];
  down = {};
  seals = [];
  let made = 0;
  upstream = await startUpstream((request, response) => {
    const key = String(request.headers['x-api-key']).replace('sk-', '');
    const json = { 'content-type': 'application/json' };
    const refuse = (status: number, message: string): void =>
      void response
        .writeHead(status, json)
        .end(JSON.stringify({ type: 'error', error: { type: 'api_error', message } }));
    const status = down[key];
    if (status !== undefined) {
      refuse(status, 'down');
      return;
    }
    const sent = [...request.body.toString().matchAll(/"data":"sealed-by-(\w+)-\d+"/g)].map(
      ([, by]) => by ?? '',
    );
    if (sent.some((by) => by !== key)) {
      refuse(400, 'This was not encrypted here.');
      return;
    }
    served.push(key);
    seals.push(sent);
    made += 1;
    response.writeHead(200, json).end(
      JSON.stringify({
        id: `msg_${made}`,
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [
          { type: 'redacted_thinking', data: `sealed-by-${key}-${made}` },
          { type: 'text', text: 'yes' },
        ],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 5, output_tokens: 7 },
      }),
    );
  });
});
afterEach(async () => {
  for (const gateway of gateways) await gateway.close();
  gateways = [];
  await upstream.close();
});

const keys = ['sk-one', 'sk-two'];

async function start(config: GatewayConfig = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    channels: [anthropic({ keys, baseUrl: `${upstream.url}/v1`, models: ['m'] })],
    // A key that is down is asked again soon.
    health: { failures: 1, rest: 100, refusedRest: 100 },
    ...config,
  });
  gateways.push(gateway);
  return gateway;
}

interface Outcome {
  readonly status: number;
  readonly losses: string | null;
  readonly content: readonly Json[];
}

async function sendMessages(
  { url, key }: TestGateway,
  messages: readonly Json[],
  { body = {}, headers = {} }: { readonly body?: Json; readonly headers?: Record<string, string> } = {},
): Promise<Outcome> {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': key,
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: JSON.stringify({ model: 'm', max_tokens: 100, messages, ...body }),
  });
  const { content = [] } = (await response.json()) as { content?: readonly Json[] };
  return { status: response.status, losses: response.headers.get('x-sluice-loss'), content };
}

const question = (content = 'hi'): Json => ({ role: 'user', content });
const other = (key: string | undefined): string => (key === 'one' ? 'two' : 'one');

describe('with two keys behind one provider', () => {
  test('a session’s turns stay on one key, whichever way it names itself, and sessions share the keys', async () => {
    const gateway = await start();
    const names: ((session: string) => Parameters<typeof sendMessages>[2])[] = [
      (session) => ({ body: { metadata: { user_id: `user_1_account__session_${session}` } } }),
      (session) => ({ headers: { 'x-claude-code-session-id': session } }),
      (session) => ({ headers: { 'session-id': session } }),
    ];
    for (const named of names) {
      const homes = new Set<string>();
      for (let session = 0; session < 16; session += 1) {
        served = [];
        for (let round = 0; round < 4; round += 1)
          await sendMessages(gateway, [question()], named(`s-${session}`));
        expect(new Set(served).size).toBe(1);
        homes.add(served[0] ?? '');
      }
      expect([...homes].toSorted()).toEqual(['one', 'two']);
    }
  });

  test('calls that name no session take turns', async () => {
    const gateway = await start();
    for (let round = 0; round < 4; round += 1) await sendMessages(gateway, [question()]);
    expect(served.toSorted()).toEqual(['one', 'one', 'two', 'two']);
  });

  test('a session moves when its key is down, and goes back when that one is well again', async () => {
    const gateway = await start();
    const session = { headers: { 'x-session-id': 'mine' } };
    await sendMessages(gateway, [question()], session);
    const [home = ''] = served;
    down[home] = 401;
    for (let round = 0; round < 3; round += 1)
      expect((await sendMessages(gateway, [question()], session)).status).toBe(200);
    expect(served.slice(1)).toEqual([other(home), other(home), other(home)]);
    down = {};
    await expect
      .poll(
        async () => {
          await sendMessages(gateway, [question()], session);
          return served.at(-1);
        },
        { interval: 50 },
      )
      .toBe(home);
  });

  test('another gateway on the same database, and the next start, come to the same choice', async () => {
    const folder = temporaryFolder();
    const database = `sqlite:${join(folder, 'sluice.db')}`;
    const first = await start({ database });
    const homes = async (gateway: TestGateway): Promise<readonly string[]> => {
      served = [];
      for (let session = 0; session < 16; session += 1)
        await sendMessages({ ...gateway, key: first.key }, [question()], {
          headers: { 'x-session-id': `s-${session}` },
        });
      return served;
    };
    const before = await homes(first);
    expect([...new Set(before)].toSorted()).toEqual(['one', 'two']);
    expect(await homes(await start({ database }))).toEqual(before);
    await first.close();
    gateways = gateways.filter((gateway) => gateway !== first);
    expect(await homes(await start({ database }))).toEqual(before);
  });

  test('its encrypted reasoning goes back to the key that made it, though the session names itself nowhere', async () => {
    const gateway = await start();
    for (let round = 0; round < 8; round += 1) {
      const { content } = await sendMessages(gateway, [question(`question ${round}`)]);
      const home = served.at(-1);
      const reply = await sendMessages(gateway, [
        question(`question ${round}`),
        { role: 'assistant', content },
        question('go on'),
      ]);
      expect(reply).toMatchObject({ status: 200, losses: null });
      expect([served.at(-1), seals.at(-1)]).toEqual([home, [home]]);
    }
  });

  test('with that key down they move, and encrypted reasoning is dropped with a reported loss', async () => {
    const gateway = await start();
    const { content } = await sendMessages(gateway, [question()]);
    const [home = ''] = served;
    down[home] = 403;
    const history = [question(), { role: 'assistant', content }, question('go on')];
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const reply = await sendMessages(gateway, history);
      expect(reply.status).toBe(200);
      expect(reply.losses).toContain('messages[1].content[0]');
      expect([served.at(-1), seals.at(-1)]).toEqual([other(home), []]);
    }
    // What the client still has is good again when the key is.
    down = {};
    await expect
      .poll(
        async () => {
          const { losses } = await sendMessages(gateway, history);
          return [served.at(-1), losses];
        },
        { interval: 50 },
      )
      .toEqual([home, null]);
  });

  test('without the plugin the keys take turns, whatever the session', async () => {
    const gateway = await start({ plugins: [sessionAffinity.off()] });
    for (let round = 0; round < 4; round += 1)
      await sendMessages(gateway, [question()], { headers: { 'x-session-id': 'mine' } });
    expect(served.toSorted()).toEqual(['one', 'one', 'two', 'two']);
  });
});
