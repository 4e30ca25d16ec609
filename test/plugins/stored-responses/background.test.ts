import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { openResponseStore } from '../../../core/state/responses/open.ts';
import type { ResponseStore, StoredResponse } from '../../../core/state/responses/index.ts';
import { BackgroundRuns, type BackgroundOptions } from '../../../plugins/stored-responses/background.ts';
import storedResponses from '../../../plugins/stored-responses/index.ts';
import {
  call,
  framesOf,
  responseIn,
  startNative,
  textOf,
  runTurn,
  type Json,
  type NativeProvider,
} from '../../flows/_turns.ts';
import { openStores } from '../../../core/state/stores.ts';
import { temporaryDatabase } from '../../core/state/support.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectionOf } from '../../support/sqlite.ts';

let native: NativeProvider;
let gateway: TestGateway;
/** Lets the held provider answer. */
let goOn = Promise.withResolvers<void>();

beforeAll(async () => {
  native = await startNative({}, (request, response) => {
    if (!request.body.includes('hold')) return false;
    void goOn.promise.then(() => response.writeHead(500).end('{"error":{"message":"broken"}}'));
    return true;
  });
  gateway = await startGateway({
    timeouts: { drain: 200 },
    plugins: [storedResponses({ backgroundRuns: 20 })],
    channels: [demo(), demo({ id: 'slow', delay: 600, pace: 30, models: { slow: 'demo' } }), native.channel],
  });
});
afterAll(async () => {
  goOn.resolve();
  await gateway.close();
  await native.close();
});
beforeEach(() => {
  native.requests.length = 0;
  goOn = Promise.withResolvers<void>();
});

const get = async (id: unknown): Promise<Json> =>
  (await call(gateway, 'GET', `/v1/responses/${String(id)}`)).body;
const cancel = (id: unknown): Promise<{ status: number; body: Json }> =>
  call(gateway, 'POST', `/v1/responses/${String(id)}/cancel`);
const becomes = async (id: unknown, status: string): Promise<void> => {
  await expect.poll(async () => (await get(id)).status).toBe(status);
};

describe('a response in the background', () => {
  test('is queued at once, made while nobody waits, and can be followed', async () => {
    const queued = await runTurn(gateway, { model: 'slow', input: 'My name is Ada', background: true });
    expect(queued).toMatchObject({
      object: 'response',
      status: 'queued',
      background: true,
      output: [],
      usage: null,
    });
    const early = await call(gateway, 'POST', '/v1/responses', {
      model: 'demo',
      previous_response_id: queued.id,
      input: 'x',
    });
    expect(early.body.error).toMatchObject({ code: 'previous_response_not_found' });
    await becomes(queued.id, 'in_progress');
    await becomes(queued.id, 'completed');
    const made = await get(queued.id);
    expect(made).toMatchObject({
      id: queued.id,
      background: true,
      usage: { output_tokens: expect.any(Number) },
    });
    expect(textOf(made)).toBe('You said: My name is Ada');
    const next = await runTurn(gateway, {
      model: 'demo',
      previous_response_id: queued.id,
      input: '!request',
    });
    expect(textOf(next)).toContain('My name is Ada');
  });

  test('follows earlier turns and grows a conversation', async () => {
    const first = await runTurn(gateway, { model: 'demo', input: 'My name is Ada' });
    const second = await runTurn(gateway, {
      model: 'demo',
      previous_response_id: first.id,
      input: '!request',
      background: true,
    });
    await becomes(second.id, 'completed');
    expect(textOf(await get(second.id))).toContain('My name is Ada');
    const { body: conversation } = await call(gateway, 'POST', '/v1/conversations', {});
    const third = await runTurn(gateway, {
      model: 'demo',
      conversation: conversation.id,
      input: 'Hello',
      background: true,
    });
    await becomes(third.id, 'completed');
    const items = await call(gateway, 'GET', `/v1/conversations/${String(conversation.id)}/items`);
    expect(items.body.data).toHaveLength(2);
  });

  test('keeps the id it was given, on a provider that gives ids of its own', async () => {
    const queued = await runTurn(gateway, { model: 'native-1', input: 'Hello', background: true });
    await becomes(queued.id, 'completed');
    expect(queued.id).not.toMatch(/native/);
    expect(textOf(await get(queued.id))).toBe('native 1');
    expect(native.bodies()[0]).not.toHaveProperty('background');
    await runTurn(gateway, { model: 'native-1', previous_response_id: queued.id, input: 'Again' });
    expect(JSON.stringify(native.bodies()[1]?.input)).toContain('native 1');
  });

  test('begins at once, also where a cheaper one of some hours is asked for: the client is told what has no effect', async () => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'native-1',
        input: 'Hello',
        background: true,
        background_options: { completion_window: '2h', continuation_id: 'a' },
      }),
    });
    expect(response.headers.get('x-sluice-loss')).toBe(
      'background_options.completion_window, background_options.continuation_id',
    );
    const queued = (await response.json()) as Json;
    await becomes(queued.id, 'completed');
    expect(native.bodies()[0]).not.toHaveProperty('background_options');
    const usual = { completion_window: 'soonest' };
    const direct = await runTurn(gateway, { model: 'native-1', input: 'Hello', background_options: usual });
    expect(direct.status).toBe('completed');
    expect(native.bodies()[1]).not.toHaveProperty('background_options');
  });

  test('that fails says why', async () => {
    const queued = await runTurn(gateway, { model: 'demo', input: '!status=400', background: true });
    await becomes(queued.id, 'failed');
    expect(await get(queued.id)).toMatchObject({
      status: 'failed',
      output: [],
      error: { code: expect.any(String), message: expect.any(String) },
    });
    const broken = await runTurn(gateway, { model: 'demo', input: '!error-after=2', background: true });
    await becomes(broken.id, 'failed');
    expect(await get(broken.id)).toMatchObject({ error: { code: 'server_error' } });
  });

  test('is refused where nothing would be kept of it', async () => {
    const refused = await call(gateway, 'POST', '/v1/responses', {
      model: 'demo',
      input: 'x',
      background: true,
      store: false,
    });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toMatchObject({ param: 'background' });
  });
});

describe('cancelling', () => {
  test('stops a response that is being made, and its provider', async () => {
    const queued = await runTurn(gateway, { model: 'native-1', input: 'hold', background: true });
    await expect.poll(() => native.requests.length).toBe(1);
    const cancelled = await cancel(queued.id);
    expect(cancelled).toMatchObject({ status: 200, body: { id: queued.id, status: 'cancelled' } });
    await native.requests[0]?.closed;
    expect(await get(queued.id)).toMatchObject({ status: 'cancelled' });
    expect(await cancel(queued.id)).toEqual(cancelled);
    const next = await call(gateway, 'POST', '/v1/responses', {
      model: 'demo',
      previous_response_id: queued.id,
      input: 'x',
    });
    expect(next.body.error).toMatchObject({ code: 'previous_response_not_found' });
  });

  test('too late changes nothing', async () => {
    const queued = await runTurn(gateway, { model: 'demo', input: 'Hello', background: true });
    await becomes(queued.id, 'completed');
    expect(await cancel(queued.id)).toMatchObject({ status: 200, body: { status: 'completed' } });
  });

  test('is for background responses of the same key', async () => {
    const { id } = await runTurn(gateway, { model: 'demo', input: 'Hello' });
    expect((await cancel(id)).status).toBe(400);
    const queued = await runTurn(gateway, { model: 'slow', input: 'a b c d e', background: true });
    const { value } = await gateway.apiKeys.create({ name: 'stranger' });
    const foreign = await call(
      { url: gateway.url, key: value },
      'POST',
      `/v1/responses/${String(queued.id)}/cancel`,
    );
    expect(foreign.status).toBe(404);
    await becomes(queued.id, 'completed');
  });
});

describe('cancelled at another gateway on the same database', () => {
  /** Two gateways. The first makes one response at a time in the background; its provider answers with `answer` when it may. */
  async function twoGateways(answer: 'a response' | 'an error') {
    const mayAnswer = Promise.withResolvers<void>();
    const provider = await startNative({}, (request, response) => {
      if (!request.body.includes('hold')) return false;
      void mayAnswer.promise.then(() =>
        answer === 'an error'
          ? response.writeHead(500).end('{"error":{"message":"broken"}}')
          : response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(late)),
      );
      return true;
    });
    const database = temporaryDatabase();
    const start = (): Promise<TestGateway> =>
      startGateway({
        database,
        plugins: [storedResponses({ backgroundRuns: 1 })],
        channels: [provider.channel],
        routing: { attempts: 1 },
      });
    const gateways = [await start(), await start()] as const;
    onTestFinished(async () => {
      mayAnswer.resolve();
      for (const one of gateways) await one.close();
      await provider.close();
    });
    const [maker, other] = gateways;
    return { maker, other: { url: other.url, key: maker.key }, provider, goOn: () => mayAnswer.resolve() };
  }

  const late = {
    id: 'resp_late',
    object: 'response',
    created_at: 1_760_000_000,
    status: 'completed',
    model: 'native-1',
    output: [
      {
        id: 'msg_late',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'too late', annotations: [] }],
      },
    ],
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  };

  test.each(['a response', 'an error'] as const)(
    'it stays cancelled when its provider then answers with %s, and its conversation does not grow',
    async (answer) => {
      const { maker, other, provider, goOn: answerNow } = await twoGateways(answer);
      const { body: conversation } = await call(maker, 'POST', '/v1/conversations', {});
      const request = { model: 'native-1', input: 'hold', background: true, conversation: conversation.id };
      const queued = await runTurn(maker, request);
      await expect.poll(() => provider.requests.length).toBe(1);
      const cancelled = await call(other, 'POST', `/v1/responses/${String(queued.id)}/cancel`);
      expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
      answerNow();
      // There is room for one run: the next one is taken when the first has ended.
      const next = { model: 'native-1', input: 'next', background: true };
      await expect.poll(async () => (await call(maker, 'POST', '/v1/responses', next)).status).toBe(200);
      for (const reader of [maker, other]) {
        const { body } = await call(reader, 'GET', `/v1/responses/${String(queued.id)}`);
        expect(body).toMatchObject({ status: 'cancelled', output: [] });
      }
      const items = await call(maker, 'GET', `/v1/conversations/${String(conversation.id)}/items`);
      expect(items.body.data).toEqual([]);
    },
  );
});

test('cancelled at another gateway before it began, it stays cancelled, and no provider is asked', async () => {
  const provider = await startNative({});
  const database = temporaryDatabase();
  const shared = await startGateway({ database, channels: [provider.channel] });
  const stores = openStores(database);
  onTestFinished(async () => {
    await shared.close();
    await stores.close();
    await provider.close();
  });
  connectionOf(stores).exec(`
    CREATE TRIGGER cancelled_elsewhere AFTER INSERT ON responses WHEN NEW.status = 'queued' BEGIN
      UPDATE responses SET status = 'cancelled', response = json_set(response, '$.status', 'cancelled')
        WHERE owner = NEW.owner AND id = NEW.id;
    END`);
  const queued = await runTurn(shared, { model: 'native-1', input: 'Hello', background: true });
  await expect
    .poll(() =>
      shared.lines.some((line) => line['msg'] === 'a background run ended' && line['response'] === queued.id),
    )
    .toBe(true);
  const { body } = await call(shared, 'GET', `/v1/responses/${String(queued.id)}`);
  expect(body).toMatchObject({ status: 'cancelled' });
  expect(provider.requests).toEqual([]);
});

test('completed by another gateway while it is cancelled here, it stays completed', async () => {
  const stores = openStores(temporaryDatabase());
  onTestFinished(() => stores.close());
  const responses = openResponseStore(stores);
  const running: StoredResponse = {
    owner: 'one',
    id: 'resp_1',
    createdAt: Math.floor(Date.now() / 1000),
    expiresAt: Math.floor(Date.now() / 1000) + 60,
    response: { id: 'resp_1', status: 'in_progress' },
    input: [],
    runsUntil: Date.now() + 60_000,
  };
  await responses.save(running);
  const store: ResponseStore = {
    ...responses,
    async find(owner, id) {
      const found = await responses.find(owner, id);
      if (found?.response['status'] === 'in_progress')
        await responses.save({ ...running, response: { id, status: 'completed' } });
      return found;
    },
  };
  const runs = new BackgroundRuns({ store } as BackgroundOptions);
  expect(await runs.cancel('one', 'resp_1')).toMatchObject({ response: { status: 'completed' } });
});

describe('a stream in the background', () => {
  const open = (body: Json, signal?: AbortSignal): Promise<Response> =>
    fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true, background: true }),
      ...(signal === undefined ? {} : { signal }),
    });

  test.each(['demo', 'native-1'])(
    'shows everything live, and what is kept is what was seen (%s)',
    async (model) => {
      const frames = framesOf(await (await open({ model, input: 'Hello' })).text());
      const last = frames.at(-1);
      expect(last).toMatchObject({ type: 'response.completed' });
      expect(frames.map(({ sequence_number }) => sequence_number)).toEqual(frames.map((_, index) => index));
      const seen = responseIn(last);
      expect(responseIn(frames[0])).toMatchObject({ id: seen.id, created_at: seen.created_at });
      expect(textOf(seen)).toMatch(/^(You said: Hello|native 1)$/);
      await becomes(seen.id, 'completed');
      expect(await get(seen.id)).toEqual(seen);
    },
  );

  test('goes on when its client leaves', async () => {
    const leaving = new AbortController();
    const response = await open({ model: 'slow', input: 'a b c d e f g h' }, leaving.signal);
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    const [created] = framesOf(Buffer.from(value ?? []).toString());
    leaving.abort();
    const { id } = responseIn(created);
    await becomes(id, 'completed');
    expect(textOf(await get(id))).toBe('You said: a b c d e f g h');
  });

  test('is not held up by a client that reads nothing, which is told where to look', async () => {
    const response = await open({ model: 'demo', input: '!chunks=60000' });
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    const { id } = responseIn(framesOf(Buffer.from(value ?? []).toString())[0]);
    await expect.poll(async () => (await get(id)).status).toBe('completed');
    let rest = '';
    for (;;) {
      const { done, value: chunk } = (await reader?.read()) ?? { done: true };
      if (done) break;
      rest = (rest + Buffer.from(chunk ?? []).toString()).slice(-100_000);
    }
    expect(rest).toContain(`read too slowly: fetch ${String(id)}`);
    expect(textOf(await get(id))).toMatch(/ 60000$/);
  });

  test('tells its id at once, and ends with an error when it is cancelled', async () => {
    const response = await open({ model: 'native-1', input: 'hold' });
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    const [created] = framesOf(Buffer.from(value ?? []).toString());
    expect(created).toMatchObject({ type: 'response.created', response: { background: true } });
    const { id } = responseIn(created);
    await expect.poll(() => native.requests.length).toBe(1);
    await cancel(id);
    const { value: end } = (await reader?.read()) ?? {};
    expect(Buffer.from(end ?? []).toString()).toContain('The response was cancelled.');
    await native.requests[0]?.closed;
    expect(await get(id)).toMatchObject({ status: 'cancelled' });
  });
});

test('more at once than the operator allows are refused, and there is room again afterwards', async () => {
  const held = await Promise.all(
    Array.from({ length: 20 }, () =>
      runTurn(gateway, { model: 'native-1', input: 'hold', background: true }),
    ),
  );
  const refused = await call(gateway, 'POST', '/v1/responses', {
    model: 'demo',
    input: 'x',
    background: true,
  });
  expect(refused.status).toBe(503);
  await Promise.all(held.map(({ id }) => cancel(id)));
  const queued = await runTurn(gateway, { model: 'demo', input: 'x', background: true });
  await becomes(queued.id, 'completed');
});

test('a gateway that stops keeps what it was making as failed', async () => {
  const upstream = await startNative({}, () => true);
  const database = temporaryDatabase();
  const draining = await startGateway({ database, timeouts: { drain: 100 }, channels: [upstream.channel] });
  const queued = await runTurn(draining, { model: 'native-1', input: 'x', background: true });
  await expect.poll(() => upstream.requests.length).toBe(1);
  await draining.close();
  await upstream.close();
  const stores = openStores(database);
  try {
    const find = connectionOf(stores).prepare('SELECT status, response FROM responses WHERE id = ?');
    const { status, response } = find.get(String(queued.id)) ?? {};
    expect(status).toBe('failed');
    expect(String(response)).toContain('The gateway was stopped');
  } finally {
    await stores.close();
  }
});
