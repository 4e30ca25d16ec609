import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NewApiKey } from '../../core/state/api-keys/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { responseDone, startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';

type Json = Record<string, unknown>;

/** Says what the client writes between `say` and the end: the test decides on every message of the provider's. */
let provider: RealtimeUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await startRealtimeUpstream((session, message) => {
    if (message === undefined) return;
    const { say } = JSON.parse(message.data.toString()) as { say?: unknown[] };
    for (const one of say ?? []) session.send(one);
  });
  gateway = await startGateway({
    channels: [
      openai({
        key: 'k',
        baseUrl: provider.url,
        models: ['priced', 'free'],
        traits: { '*': { inputLimit: 1000, outputLimit: 1000 } },
      }),
    ],
    prices: { priced: { input: 10, output: 20, cacheRead: 1 } },
  });
});

afterAll(async () => {
  await gateway.close();
  await provider.close();
});

async function keyed(
  options: Partial<NewApiKey> = {},
): Promise<{ readonly value: string; readonly id: string }> {
  const { value, record } = await gateway.apiKeys.create({ name: 'spender', ...options });
  return { value, id: record.id };
}

function open(key: string, model = 'priced'): Promise<SocketClient> {
  return SocketClient.open(`${gateway.url}/v1/realtime?model=${model}`, {
    headers: { authorization: `Bearer ${key}` },
  });
}

async function records(keyId: string) {
  const { records: found } = await openUsageLog(gateway.stores).page({ keyId }, 100);
  return found.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

async function spent(keyId: string): Promise<number> {
  const [state] = await openLedger(gateway.stores).states(keyId, [
    { unit: 'token', period: 'total', amount: 1 },
  ]);
  return state?.spent ?? 0;
}

const scriptOf = (...events: unknown[]): Json => ({ say: events });
const tokens = (amount: number): Partial<NewApiKey> => ({
  budgets: [{ unit: 'token', period: 'total', amount }],
});
const isDone = ({ type }: Json): boolean => type === 'response.done';

describe('what a session is charged', () => {
  test('each answer once and at once, as a record of its own, while the session goes on', async () => {
    const key = await keyed();
    const client = await open(key.value);
    client.send(scriptOf({ type: 'response.created', response: { id: 'a' } }, responseDone('a', 100, 50)));
    await expect.poll(() => records(key.id)).toHaveLength(1);
    // Told twice, charged once.
    client.send(scriptOf(responseDone('a', 100, 50), responseDone('b', 200, 10)));
    await expect.poll(() => records(key.id)).toHaveLength(2);
    expect(await records(key.id)).toMatchObject([
      {
        id: expect.stringMatching(/^req_\w+_1$/),
        input: 100,
        output: 50,
        microDollars: 2000,
        ended: 'complete',
      },
      { id: expect.stringMatching(/_2$/), input: 200, output: 10, microDollars: 2200, operation: 'realtime' },
    ]);
    expect(await spent(key.id)).toBe(360);
    client.socket.close(1000);
    await client.closed;
    // The session itself: how long it was and how it ended, and no cost.
    await expect.poll(() => records(key.id)).toHaveLength(3);
    expect((await records(key.id)).find(({ id }) => !/_\d+$/.test(id))).toMatchObject({
      input: 0,
      output: 0,
      microDollars: 0,
      ended: 'complete',
    });
    expect(await spent(key.id)).toBe(360);
  });

  test.each([
    [{ factor: 3 }, 6_000],
    [{ models: [{ model: 'pri*', price: { input: 100, output: 1 } }] }, 10_050],
  ])('by the price rule of the team, at each level and in rolling hours: %j', async (pricing, charged) => {
    const hours = [{ unit: 'micro-dollar', period: 'hours', hours: 5, amount: 1e12 }] as const;
    const team = await gateway.apiKeys.owners.create({ kind: 'team', name: 't', budgets: hours, pricing });
    const key = await keyed({ team: team.id, budgets: hours });
    const client = await open(key.value);
    client.send(scriptOf({ type: 'response.created', response: { id: 'a' } }, responseDone('a', 100, 50)));
    await expect.poll(() => records(key.id)).toHaveLength(1);
    expect(await records(key.id)).toMatchObject([{ microDollars: 2_000, chargedMicroDollars: charged }]);
    const { budgets = [] } = (await gateway.apiKeys.effectiveById(key.id)) ?? {};
    const states = await openLedger(gateway.stores).states(key.id, budgets);
    expect(states.map(({ spent: sum }) => sum)).toEqual([charged, charged]);
    client.vanish();
  });

  test('cached input at its price; transcriptions; nothing for an answer that failed without figures', async () => {
    const key = await keyed();
    const client = await open(key.value);
    const usage = {
      input_tokens: 100,
      output_tokens: 10,
      total_tokens: 110,
      input_token_details: { text_tokens: 60, audio_tokens: 40, cached_tokens: 50 },
      output_token_details: { text_tokens: 4, audio_tokens: 6 },
    };
    client.send(
      scriptOf(
        responseDone('a', 0, 0, { usage }),
        {
          type: 'conversation.item.input_audio_transcription.completed',
          item_id: 'i',
          content_index: 0,
          transcript: '"response.done"',
          usage: { type: 'tokens', input_tokens: 7, output_tokens: 3, total_tokens: 10 },
        },
        responseDone('b', 0, 0, { status: 'failed', usage: null }),
        { type: 'response.output_text.delta', delta: '"response.done" is a word too' },
      ),
    );
    await expect.poll(() => records(key.id)).toHaveLength(2);
    expect(await records(key.id)).toMatchObject([
      { input: 100, output: 10, cacheRead: 50, microDollars: 750 },
      { input: 7, output: 3 },
    ]);
    expect(await spent(key.id)).toBe(120);
    client.vanish();
  });

  test('a client that leaves in the middle of an answer pays for what it heard', async () => {
    const key = await keyed(tokens(10_000));
    const client = await open(key.value);
    const delta = { type: 'response.output_audio_transcript.delta', delta: 'word' };
    client.send(scriptOf({ type: 'response.created', response: { id: 'a' } }, delta, delta, delta));
    await client.until(({ type }) => type === delta.type, 3);
    client.vanish();
    await expect.poll(() => records(key.id)).toHaveLength(2);
    const [, left] = await records(key.id);
    expect(left).toMatchObject({ output: 3, estimated: true, ended: 'left' });
    const [state] = await openLedger(gateway.stores).states(key.id, [
      { unit: 'token', period: 'total', amount: 10_000 },
    ]);
    expect(state).toMatchObject({ spent: 3, reserved: 0 });
  });
});

describe('budgets', () => {
  test('a session whose budget is spent gets its last answer, an error event, and 1008', async () => {
    const key = await keyed(tokens(4000));
    const client = await open(key.value);
    client.send(scriptOf(responseDone('a', 900, 900)));
    await client.until(isDone);
    client.send(scriptOf(responseDone('b', 900, 900), { type: 'never.seen' }));
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.slice(-2)).toMatchObject([
      { type: 'response.done', response: { id: 'b' } },
      {
        type: 'error',
        event_id: expect.any(String),
        error: { type: 'insufficient_quota', code: 'insufficient_quota' },
      },
    ]);
    expect(await spent(key.id)).toBe(3600);
    const refused = await refusedSocket(`${gateway.url}/v1/realtime?model=priced`, {
      headers: { authorization: `Bearer ${key.value}` },
    });
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'insufficient_quota' } } });
  });

  test('many sessions at once never spend more than the budget', async () => {
    // Each answer may use 2,000; the budget has room for four claims at once, and eight answers of 1,000 between.
    const key = await keyed(tokens(10_000));
    const opened = await Promise.all(
      Array.from({ length: 12 }, () => open(key.value).catch(() => undefined)),
    );
    const clients = opened.filter((client) => client !== undefined);
    expect(clients.length).toBe(5);
    await Promise.all(
      clients.map(async (client, number) => {
        for (let count = 0; client.socket.readyState === client.socket.OPEN; count += 1) {
          client.send(scriptOf(responseDone(`${number} ${count}`, 600, 400)));
          await client.until(isDone, count + 1).catch(() => {});
        }
      }),
    );
    for (const client of clients) expect((await client.closed).code).toBe(1008);
    const total = await spent(key.id);
    expect(total).toBeGreaterThan(5000);
    expect(total).toBeLessThanOrEqual(10_000);
    const charged = (await records(key.id)).reduce((sum, { input, output }) => sum + input + output, 0);
    expect(charged).toBe(total);
  });

  test('a budget in dollars needs a price: 403', async () => {
    const key = await keyed({ budgets: [{ unit: 'micro-dollar', period: 'total', amount: 1_000_000 }] });
    const url = `${gateway.url}/v1/realtime?model=free`;
    const refused = await refusedSocket(url, { headers: { authorization: `Bearer ${key.value}` } });
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'model_not_allowed' } } });
  });
});

describe('a key that is no longer valid ends its sessions', () => {
  test.each([
    ['revoked', (id: string) => gateway.apiKeys.revoke(id), 'invalid_api_key'],
    ['switched off', (id: string) => gateway.apiKeys.update(id, { enabled: false }), 'invalid_api_key'],
    ['given a new secret', (id: string) => gateway.apiKeys.rotate(id), 'invalid_api_key'],
    ['expired', (id: string) => gateway.apiKeys.update(id, { expiresAt: Date.now() - 1 }), 'invalid_api_key'],
  ])('%s: an error event, and 1008', async (_how, end, code) => {
    const key = await keyed();
    const client = await open(key.value);
    await end(key.id);
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code } });
    expect((await provider.sessions.at(-1)?.closed)?.code).toBe(1000);
  });

  test('one that is only changed goes on', async () => {
    const key = await keyed();
    const client = await open(key.value);
    await gateway.apiKeys.update(key.id, { name: 'renamed' });
    await new Promise((resolve) => setTimeout(resolve, 600));
    client.send(scriptOf({ type: 'still here' }));
    expect(await client.until(({ type }) => type === 'still here')).toHaveLength(1);
    client.vanish();
  });
});
