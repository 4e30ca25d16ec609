import { randomInt } from 'node:crypto';
import { request as send } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type BudgetState, type Ledger } from '../../core/money/ledger/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, fetchRaw, formatNames, readError, voices, type Access, type FormatName } from './_wire.ts';

/** Micro-dollars for 5 input and 7 output tokens, which every complete reply of the script uses. */
const price = { input: 1_000, output: 2_000 };
const cost = 5 * 1_000 + 7 * 2_000;
const dollars = (amount: number): Budget => ({ unit: 'micro-dollar', period: 'day', amount });
/** Enough for the output limits of all models at the script's prices. */
const ample = dollars(100_000_000_000);
const tokens = (amount: number): Budget => ({ unit: 'token', period: 'total', amount });

let upstream: ScriptedUpstream;
/** Takes connections and never says a word: no request gets as far as to be written. */
let unreachable: Server;
const held = new Set<Socket>();
let gateway: TestGateway;
let ledger: Ledger;
let usageLog: UsageLog;

/** The end of the model's name says what happens to the call. */
const fates = ['fine', 'fails', 'breaks', 'hangs', 'silent', 'free'] as const;
type Fate = (typeof fates)[number];

beforeAll(async () => {
  unreachable = createServer((socket) => void held.add(socket.on('error', () => {})));
  await new Promise<void>((resolve) => unreachable.listen(0, '127.0.0.1', resolve));
  upstream = await startUpstream(async (request, response) => {
    const text = request.url + request.body.toString();
    if (text.includes('"counting"')) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(counted(JSON.parse(request.body.toString()) as JsonObject)));
      return;
    }
    const name = formatNames.find((format) => text.includes(`${format}-`)) ?? 'messages';
    const fate = fates.find((one) => text.includes(`${name}-${one}`)) ?? 'fine';
    const voice = voices[name];
    if (fate === 'silent') return;
    if (fate === 'fails') {
      response
        .writeHead(503, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.errorBody('overloaded')));
      return;
    }
    if (!/stream(?!":\s*false)/.test(text) && fate !== 'hangs') {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole('Hello.')));
      return;
    }
    const frames = voice.frames(Array.from({ length: 40 }, () => ' and so on'));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (fate === 'fine' || fate === 'free') {
      response.end(frames.join(''));
      return;
    }
    for (const frame of frames.slice(0, -voice.ending)) response.write(frame);
    await setTimeout(50);
    if (fate === 'breaks') response.destroy();
  });
  const { port } = unreachable.address() as AddressInfo;
  gateway = await startGateway({
    channels: [
      ...formatNames.map((name) =>
        voices[name].channel(upstream.url, { id: name, models: fates.map((fate) => `${name}-${fate}`) }),
      ),
      voices['chat-completions'].channel(upstream.url, {
        id: 'counting',
        models: ['counting'],
        traits: { counting: { outputLimit: 16_384 } },
      }),
      voices['chat-completions'].channel(`https://127.0.0.1:${port}`, {
        id: 'nowhere',
        models: ['chat-completions-nowhere'],
      }),
    ],
    prices: {
      'chat-completions-nowhere': price,
      ...Object.fromEntries(
        formatNames.flatMap((name) => fates.slice(0, -1).map((fate) => [`${name}-${fate}`, price])),
      ),
    },
  });
  ledger = openLedger(gateway.stores);
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  for (const socket of held) socket.destroy();
  unreachable.close();
});

/** The answer of a provider that counts as the largest does, and gives all that it may. */
function counted({ messages = [], max_tokens: limit = 20 }: JsonObject): object {
  const [{ content = '' } = {}] = messages as readonly { readonly content?: string }[];
  const input = countTokens(content, { disallowedSpecial: new Set() }) + 7;
  return {
    ...voices['chat-completions'].whole(' tok'.repeat(Number(limit))),
    usage: { prompt_tokens: input, completion_tokens: limit, total_tokens: input + Number(limit) },
  };
}

const randomText = (letters: string): string =>
  Array.from({ length: 1_500 }, () => letters[randomInt(letters.length)]).join('');

/** A key of its own for a test, and what came of it. */
interface Payer extends Access {
  readonly id: string;
  /** Waits until that many calls are booked. */
  settled(calls: number): Promise<{ readonly state: BudgetState; readonly records: readonly UsageRecord[] }>;
}

async function payer(budgets?: readonly Budget[]): Promise<Payer> {
  const { record, value } = await gateway.apiKeys.create({
    name: 'payer',
    ...(budgets === undefined ? {} : { budgets }),
  });
  const { id } = record;
  return {
    url: gateway.url,
    key: value,
    id,
    async settled(calls) {
      await expect.poll(async () => (await usageLog.page({ keyId: id }, 100)).records.length).toBe(calls);
      const { records } = await usageLog.page({ keyId: id }, 100);
      const [state] = await ledger.states(id, [budgets?.[0] ?? dollars(0)]);
      if (state === undefined) throw new Error('There is no state.');
      return { state, records };
    },
  };
}

const sumOf = (records: readonly UsageRecord[]): number =>
  records.reduce((sum, { microDollars }) => sum + (microDollars ?? 0), 0);
const model = (name: FormatName, fate: Fate): string => `${name}-${fate}`;

/** Begins a call and leaves: after the first bytes of its answer, or after a time when there are none. */
function leave(
  access: Access,
  path: string,
  headers: object,
  body: object,
  after: 'bytes' | number | (() => Promise<void>),
): Promise<void> {
  return new Promise((resolve) => {
    const request = send(new URL(path, access.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json', ...headers },
      agent: false,
    });
    const go = (): void => {
      request.destroy();
      resolve();
    };
    request.on('error', () => {});
    request.on('response', (response) => {
      if (after !== 'bytes') return;
      response.on('error', () => {});
      response.once('data', () => void setTimeout(20).then(go));
    });
    request.end(JSON.stringify(body));
    if (typeof after === 'number') void setTimeout(after).then(go);
    else if (after !== 'bytes') void after().then(go, go);
  });
}

describe('a call is paid for once, as the provider counts it', () => {
  test.each(formatNames.flatMap((client) => formatNames.map((channel) => ({ client, channel }))))(
    '$client over $channel, streamed and whole, with and without a budget',
    async ({ client, channel }) => {
      for (const budgets of [undefined, [ample, tokens(2_000_000)]]) {
        const access = await payer(budgets);
        const answers = await Promise.all(
          [true, false].map((stream) => call(access, client, model(channel, 'fine'), stream)),
        );
        expect(answers.map(({ status }) => status)).toEqual([200, 200]);
        const { state, records } = await access.settled(2);
        expect(state).toMatchObject({ spent: 2 * cost, reserved: 0 });
        for (const record of records) {
          expect(record).toMatchObject({ input: 5, output: 7, microDollars: cost, ended: 'complete' });
          expect(record.estimated).toBeUndefined();
          expect(record.price).toMatchObject(price);
        }
        expect(await ledger.states(access.id, [tokens(1)])).toMatchObject([{ spent: 24, reserved: 0 }]);
      }
    },
  );

  test('in the background, when the answer is made, though the client left long before', async () => {
    const access = await payer([ample]);
    const request = {
      model: model('messages', 'fine'),
      input: 'hi',
      background: true,
      max_output_tokens: 100,
    };
    const queued = await fetchRaw(access, '/v1/responses', { body: request });
    expect(JSON.parse(queued.text)).toMatchObject({ status: 'queued' });
    const { state, records } = await access.settled(1);
    expect(state).toMatchObject({ spent: cost, reserved: 0 });
    expect(records).toMatchObject([{ input: 5, output: 7, microDollars: cost }]);
    const { id } = JSON.parse(queued.text) as { id: string };
    expect(JSON.parse((await fetchRaw(access, `/v1/responses/${id}`)).text)).toMatchObject({
      status: 'completed',
    });
  });

  test('and counting tokens costs nothing, even when the budget is spent', async () => {
    const access = await payer([tokens(0)]);
    const body = { model: model('messages', 'fine'), messages: [{ role: 'user', content: 'hi' }] };
    const answer = await fetchRaw(access, '/v1/messages/count_tokens', {
      body,
      headers: voices.messages.headers,
    });
    expect(answer.status).not.toBe(429);
    expect((await access.settled(1)).state).toMatchObject({ spent: 0, reserved: 0 });
  });
});

/**
 * What a broken stream may be charged for: 40 times " and so on" is 400 bytes, about 100 tokens. A provider that tells its usage with each
 * chunk is believed up to there.
 */
const seenOutput: Readonly<Record<FormatName, readonly [least: number, most: number]>> = {
  'chat-completions': [90, 110],
  messages: [90, 110],
  'generate-content': [7, 10],
};

describe('a client that leaves', () => {
  test.each(formatNames.flatMap((client) => formatNames.map((channel) => ({ client, channel }))))(
    'in the middle of a stream pays for what was seen: $client over $channel',
    async ({ client, channel }) => {
      const access = await payer([ample]);
      const name = model(channel, 'hangs');
      const voice = voices[client];
      await leave(access, voice.path(name, true), voice.headers, voice.body(name, true), 'bytes');
      const { state, records } = await access.settled(1);
      const [record] = records;
      const [least, most] = seenOutput[channel];
      expect(record?.output).toBeGreaterThanOrEqual(least);
      expect(record?.output).toBeLessThanOrEqual(most);
      expect(record).toMatchObject({ ended: 'left' });
      expect(state).toMatchObject({ spent: record?.microDollars, reserved: 0 });
    },
  );

  test.each(formatNames.flatMap((client) => [true, false].map((stream) => ({ client, stream }))))(
    'before the provider answers pays for what the provider had to read: $client, stream $stream',
    async ({ client, stream }) => {
      const access = await payer([ample]);
      const name = model('messages', 'silent');
      const voice = voices[client];
      const requestsBefore = upstream.requests.length;
      const long = (text: string) => text.replace('"hi"', JSON.stringify('x'.repeat(20_000)));
      const body = JSON.parse(long(JSON.stringify(voice.body(name, stream)))) as object;
      await leave(access, voice.path(name, stream), voice.headers, body, async () => {
        await expect.poll(() => upstream.requests.length).toBeGreaterThan(requestsBefore);
      });
      const { state, records } = await access.settled(1);
      expect(records).toMatchObject([{ status: 499, ended: 'left', output: 0, estimated: true }]);
      expect(records[0]?.input).toBeGreaterThanOrEqual(5_000);
      expect(records[0]?.input).toBeLessThan(5_100);
      expect(state).toMatchObject({ spent: sumOf(records), reserved: 0 });
      expect(sumOf(records)).toBe((records[0]?.input ?? 0) * price.input);
    },
  );

  test('before any provider could be reached pays nothing', async () => {
    const access = await payer([ample]);
    const body = voices['chat-completions'].body('chat-completions-nowhere', true);
    await leave(access, '/v1/chat/completions', {}, body, async () => {
      await expect.poll(() => held.size).toBeGreaterThan(0);
    });
    const { state, records } = await access.settled(1);
    expect(state).toMatchObject({ spent: 0, reserved: 0 });
    expect(records).toMatchObject([{ status: 499, microDollars: 0, input: 0 }]);
  });
});

describe('a provider that fails', () => {
  test.each(formatNames)('before it says anything costs nothing: %s', async (name) => {
    const access = await payer([ample]);
    expect((await call(access, name, model(name, 'fails'), true)).status).toBe(503);
    const { state, records } = await access.settled(1);
    expect(state).toMatchObject({ spent: 0 });
    expect(records).toMatchObject([{ microDollars: 0, output: 0 }]);
    await expect.poll(async () => (await ledger.states(access.id, [dollars(1)]))[0]?.reserved).toBe(0);
  });

  test.each(formatNames)('in the middle of a stream is paid for what was seen: %s', async (name) => {
    const access = await payer([ample]);
    await call(access, name, model(name, 'breaks'), true);
    const { state, records } = await access.settled(1);
    expect(records).toMatchObject([{ ended: 'interrupted' }]);
    const [least, most] = seenOutput[name];
    expect(records[0]?.output).toBeGreaterThanOrEqual(least);
    expect(records[0]?.output).toBeLessThanOrEqual(most);
    expect(state).toMatchObject({ spent: sumOf(records), reserved: 0 });
  });
});

describe('a budget that is spent', () => {
  test.each(formatNames)('is 429 that must not be tried again, in the words of %s', async (name) => {
    const access = await payer([dollars(10)]);
    const answer = await call(access, name, model(name, 'fine'), false);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(readError(name, answer)).toEqual({
      status: 429,
      message: expect.stringMatching(
        /^The daily budget of this API key \(\$0\.00001\) does not allow this call: .* UTC\.$/,
      ) as string,
    });
    const { state, records } = await access.settled(1);
    expect(state).toMatchObject({ spent: 0, reserved: 0 });
    expect(records).toMatchObject([{ status: 429, code: 'insufficient_quota', microDollars: 0 }]);
  });

  test.each([true, false])(
    'is no reason to refuse a call because of those whose answers were read to the end (stream %s)',
    async (stream) => {
      const budget = tokens(60);
      const access = await payer([budget]);
      // Each may come to 10 in and 15 out, and uses 12.
      const body = { ...voices.messages.body(model('messages', 'fine'), stream), max_tokens: 15 };
      const sendCall = () => fetchRaw(access, '/v1/messages', { body, headers: voices.messages.headers });
      for (let calls = 0; calls < 3; calls += 1) expect((await sendCall()).status).toBe(200);
      const refused = await sendCall();
      expect(refused.status).toBe(429);
      expect(refused.text).toContain('36 tokens spent, and it may cost up to 25 tokens');
      expect((await access.settled(4)).state).toMatchObject({ spent: 36, reserved: 0 });
    },
  );

  test.each([
    ['of random letters', () => randomText('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')],
    ['of numbers', () => randomText('0123456789')],
    [
      'in Chinese',
      () => randomText('的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子'),
    ],
  ])('is not exceeded by sixty calls at once %s, whatever the provider counts', async (_what, write) => {
    const budget = tokens(15_000);
    const access = await payer([budget]);
    const sendCall = () => {
      const body = { model: 'counting', max_tokens: 20, messages: [{ role: 'user', content: write() }] };
      return fetchRaw(access, '/v1/chat/completions', { body });
    };
    const answers = await Promise.all(Array.from({ length: 60 }, sendCall));
    const granted = answers.filter(({ status }) => status === 200).length;
    expect(granted).toBeGreaterThan(0);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(60 - granted);
    const { state, records } = await access.settled(60);
    expect(state.spent).toBe(records.reduce((sum, { input, output }) => sum + input + output, 0));
    expect(state.spent).toBeLessThanOrEqual(budget.amount);
  });

  test('near its end a call that asks for more than its model gives is sent with the model’s limit, far from it as it is', async () => {
    const limits = async (amount: number): Promise<readonly (JsonValue | undefined)[]> => {
      const access = await payer([tokens(amount)]);
      const requestsBefore = upstream.requests.length;
      const messages = [{ role: 'user', content: 'hi' }];
      const body = { model: 'counting', messages, max_tokens: 700_000, max_completion_tokens: 900_000 };
      expect((await fetchRaw(access, '/v1/chat/completions', { body })).status).toBe(200);
      const sent = JSON.parse(upstream.requests[requestsBefore]?.body.toString() ?? '') as JsonObject;
      return [sent.max_tokens, sent.max_completion_tokens];
    };
    expect(await limits(1_000_000)).toEqual([700_000, 900_000]);
    expect(await limits(100_000)).toEqual([16_384, 16_384]);
  });

  test('is never exceeded by calls at the same time, and what they did not use is free again', async () => {
    const budget = dollars(1_000_000);
    const access = await payer([budget]);
    const name = model('messages', 'fine');
    // Each may cost up to 0.2 dollars, and costs 0.019.
    const body = { ...voices.messages.body(name, false), max_tokens: 95 };
    const sendCall = () => fetchRaw(access, '/v1/messages', { body, headers: voices.messages.headers });
    const first = await Promise.all(Array.from({ length: 12 }, sendCall));
    const granted = first.filter(({ status }) => status === 200).length;
    expect(first.every(({ status }) => status === 200 || status === 429)).toBe(true);
    expect(granted).toBeGreaterThanOrEqual(5);
    let { state } = await access.settled(12);
    expect(state).toMatchObject({ spent: granted * cost, reserved: 0 });
    let calls = 12;
    for (; (await sendCall()).status === 200; calls += 1) await access.settled(calls + 1);
    ({ state } = await access.settled(calls + 1));
    expect(state.spent).toBeLessThanOrEqual(budget.amount);
    expect(state.spent).toBeGreaterThan(budget.amount - 250_000);
    expect(state.reserved).toBe(0);
  });
});

describe('a model without a price', () => {
  const name = model('messages', 'free');

  test('is refused to a key with a budget in dollars, naming what is missing', async () => {
    const access = await payer([ample]);
    const answer = await call(access, 'messages', name, false);
    expect(readError('messages', answer)).toEqual({
      status: 403,
      message: `The model ${name} has no price here, and this API key has a budget in dollars. The operator must give it one in gateway.config.ts, in dollars per million tokens: prices: { "${name}": { input: 1, output: 5 } }. "sluice prices import FILE" takes rows from a price list.`,
    });
  });

  test('is counted in tokens for every other key', async () => {
    for (const budgets of [undefined, [tokens(100_000)]]) {
      const access = await payer(budgets);
      expect((await call(access, 'messages', name, false)).status).toBe(200);
      const { records } = await access.settled(1);
      expect(records[0]).toMatchObject({ input: 5, output: 7 });
      expect(records[0]?.microDollars).toBeUndefined();
      expect(await ledger.states(access.id, [tokens(1), dollars(1)])).toMatchObject([
        { spent: 12 },
        { spent: 0 },
      ]);
    }
  });
});
