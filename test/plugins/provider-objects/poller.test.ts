import { of } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { JsonObject, PriceRule, Upstream } from 'sluice';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import type { Settlement } from '../../../core/money/ledger/index.ts';
import { Poller } from '../../../plugins/provider-objects/poller.ts';
import { formatNamed } from '../../../core/sdk/testing/formats.ts';
import { testCall } from '../../support/call.ts';

const start = Date.parse('2026-01-01T00:00:00Z');
const hour = 3_600_000;
const options = { first: 30_000, most: 300_000, parallel: 4, patience: 300_000, answerSize: 10_000 };

beforeEach(() => void vi.useFakeTimers({ now: start, toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

type Answer = { readonly status: number; readonly body: unknown };

const object = (more: Partial<ProviderObject['charge']> & object = {}): ProviderObject => ({
  owner: 'k',
  kind: 'chat-completions/batches',
  id: 'batch-1',
  channel: 'a',
  key: 'a-1',
  createdAt: start,
  seen: { status: 'validating' },
  known: { models: ['m'], endpoint: '/v1/chat/completions' },
  charge: { id: 'charge-1', asks: 0, refusals: 0, deadline: start + 24 * hour, ...more },
});

const line = (
  id: string,
  usage: object | undefined = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
) => ({
  custom_id: id,
  response: {
    status_code: 200,
    body: {
      id,
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      ...(usage === undefined ? {} : { usage }),
    },
  },
});

/** One poller before a provider that answers by path; what it wrote, and what its log has. */
async function stage(answers: Readonly<Record<string, Answer>>, pricing?: PriceRule) {
  const format = await formatNamed('chat-completions');
  const later: { readonly object: ProviderObject; readonly pollAt: number }[] = [];
  const settled: {
    readonly object: ProviderObject;
    readonly settlements: readonly Settlement[];
    readonly left: readonly ProviderObject[];
  }[] = [];
  const lines: {
    readonly level: string;
    readonly sentence: string;
    readonly fields: Record<string, unknown>;
  }[] = [];
  const requests: string[] = [];
  const logAt = (level: string) => (fields: Record<string, unknown>, sentence: string) =>
    void lines.push({ level, sentence, fields });
  let isFirst = true;
  const store = {
    claimOne: (_lease: unknown, one: ProviderObject) => Promise.resolve(one),
    later(_lease: unknown, one: ProviderObject, pollAt: number) {
      later.push({ object: one, pollAt });
      return Promise.resolve(true);
    },
    settle(one: ProviderObject, settlements: readonly Settlement[], left: readonly ProviderObject[]) {
      settled.push({ object: one, settlements, left });
      const isDone = isFirst;
      isFirst = false;
      return Promise.resolve(isDone);
    },
  };
  const channel = {
    id: 'a',
    keys: [{ id: 'a-1', index: 0 }],
    upstreamModel: (model: string) => model,
    open(_call: unknown, { method, path }: { method: string; path: string }): Promise<Upstream> {
      requests.push(`${method} ${path}`);
      const { status, body } = answers[path] ?? {
        status: 404,
        body: { error: { message: 'No such batch.' } },
      };
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return Promise.resolve({ status, headers: {}, bytes: of(Buffer.from(text)) });
    },
  };
  const tools = {
    apiKeys: { effectiveById: async () => ({ pricing }) },
    catalog: { channels: [channel] },
    providerCalls: () => ({ call: testCall().call, end: () => {} }),
    format: (name: string) => (name === 'chat-completions' ? format : undefined),
    prices: { cost: () => ({ microDollars: 100, price: {} }) },
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn') },
  };
  const poller = new Poller(store as never, tools as never, { ...options, shareOf: () => 0.5 });
  return { poller, later, settled, lines, requests };
}

const path = '/batches/batch-1';
const running: Answer = { status: 200, body: { id: 'batch-1', status: 'in_progress' } };
const done = (files: JsonObject): Answer => ({
  status: 200,
  body: { id: 'batch-1', status: 'completed', ...files },
});

describe('a batch that runs', () => {
  test('is written down as its provider has it, and asked about again later', async () => {
    const { poller, later, settled, requests } = await stage({ [path]: running });
    const now = await poller.refresh(object({ asks: 2, refusals: 2 }));
    expect(now).toMatchObject({ seen: running.body, charge: { asks: 3, refusals: 0 } });
    expect(requests).toEqual([`GET ${path}`]);
    // Each pause is half as long again as the one before.
    expect(later).toEqual([{ object: now, pollAt: start + Math.round(30_000 * 1.5 ** 3) }]);
    expect(settled).toEqual([]);
  });

  test('beyond its time is given up, and nothing of it is charged', async () => {
    const { poller, later, settled, lines } = await stage({ [path]: running });
    const late = object();
    vi.setSystemTime(start + 24 * hour);
    await poller.refresh(late);
    expect([later.length, settled.length]).toEqual([1, 0]);
    vi.setSystemTime(start + 24 * hour + 1);
    const now = await poller.refresh(late);
    expect(now).not.toHaveProperty('charge');
    expect(settled).toEqual([{ object: late, settlements: [], left: [] }]);
    expect(lines.map(({ level, sentence }) => `${level} ${sentence}`)).toEqual([
      'debug polling a batch failed',
      'warn a batch was given up and is not charged',
      'info a batch has come to its end',
    ]);
  });

  test('that is charged already is not asked about', async () => {
    const { poller, requests, lines } = await stage({ [path]: running });
    const { charge: _, ...charged } = object();
    expect(await poller.refresh(charged)).toEqual(charged);
    expect(requests).toEqual([]);
    expect(lines).toEqual([]);
  });
});

describe('a provider that does not say how a batch is', () => {
  test('is asked again later, and a failure is no word that it is gone', async () => {
    const { poller, later, settled, lines } = await stage({ [path]: { status: 500, body: 'down' } });
    vi.setSystemTime(start + 2 * hour);
    const now = await poller.refresh(object({ asks: 1, refusals: 2 }));
    expect(now).toMatchObject({ seen: { status: 'validating' }, charge: { asks: 2, refusals: 2 } });
    expect(later).toEqual([{ object: now, pollAt: start + 2 * hour + Math.round(30_000 * 1.5 ** 2) }]);
    expect(settled).toEqual([]);
    expect(lines).toMatchObject([{ level: 'debug', fields: { id: 'batch-1', channel: 'a' } }]);
  });

  test('and has it no more is believed after three times and an hour', async () => {
    const { poller, later, settled } = await stage({});
    let now = object();
    for (const refusals of [1, 2, 3, 4]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      now = await poller.refresh(now);
      expect(now.charge).toMatchObject({ refusals });
    }
    vi.setSystemTime(start + hour);
    now = await poller.refresh(now);
    expect([later.length, settled.length]).toEqual([5, 0]);
    vi.setSystemTime(start + hour + 1);
    await poller.refresh(object({ refusals: 1 }));
    expect(settled).toEqual([]);
    await poller.refresh(object({ refusals: 2 }));
    expect(settled).toMatchObject([{ settlements: [], left: [] }]);
  });
});

describe('a batch that has come to its end', () => {
  const files = { output_file_id: 'file-out', error_file_id: 'file-bad' };
  const content = '/files/file-out/content';

  test('is charged what its answers have used, once, and leaves its files to its owner', async () => {
    const { poller, later, settled, lines } = await stage({
      [path]: done(files),
      [content]: {
        status: 200,
        body: [line('1'), line('2'), { custom_id: '3', response: { status_code: 500, body: {} } }]
          .map((one) => JSON.stringify(one))
          .join('\n'),
      },
    });
    const now = await poller.refresh(object());
    expect(now).not.toHaveProperty('charge');
    expect(now.seen).toMatchObject({ status: 'completed' });
    expect(later).toEqual([]);
    const [{ settlements, left }] = settled as [(typeof settled)[0]];
    expect(settlements).toMatchObject([
      {
        keyId: 'k',
        charged: { tokens: 30, microDollars: 100 },
        record: { id: 'charge-1', input: 20, output: 10, model: 'm' },
      },
    ]);
    const file = {
      owner: 'k',
      kind: 'chat-completions/files',
      channel: 'a',
      key: 'a-1',
      createdAt: start,
      seen: {},
      known: {},
    };
    expect(left).toEqual([
      { ...file, id: 'file-out' },
      { ...file, id: 'file-bad' },
    ]);
    const ends = () => lines.filter(({ sentence }) => sentence === 'a batch has come to its end');
    expect(ends()).toMatchObject([{ fields: { id: 'batch-1', channel: 'a', microDollars: 100 } }]);
    // Another gateway has charged it meanwhile: this one says nothing of it.
    await poller.refresh(object());
    expect(settled).toHaveLength(2);
    expect(ends()).toHaveLength(1);
  });

  test.each([
    ['by which it was reserved', { pricing: { factor: 3, models: [] } }, 300],
    ['of that day, where an older gateway made it', {}, 700],
  ])('is charged by the price rule %s', async (_name, charge, microDollars) => {
    const body = [line('1'), line('2')].map((one) => JSON.stringify(one)).join('\n');
    const answers = { [path]: done(files), [content]: { status: 200, body } };
    const { poller, settled } = await stage(answers, { factor: 7 });
    await poller.refresh(object(charge));
    expect(settled[0]?.settlements).toMatchObject([{ charged: { microDollars } }]);
  });

  test('whose results cannot be read yet is asked about again, until its time is over', async () => {
    const { poller, later, settled, lines } = await stage({ [path]: done(files) });
    const now = await poller.refresh(object());
    expect(now).toMatchObject({ seen: { status: 'completed' }, charge: { asks: 1 } });
    expect([later.length, settled.length]).toEqual([1, 0]);
    expect(lines).toMatchObject([{ level: 'warn', sentence: 'results of a batch cannot be read yet' }]);
    vi.setSystemTime(start + 24 * hour + 1);
    await poller.refresh(object());
    expect(settled).toMatchObject([{ settlements: [], left: [] }]);
  });

  test('with answers that do not tell what they used is charged for the others, and the log counts them', async () => {
    const { poller, settled, lines } = await stage({
      [path]: done({ output_file_id: 'file-out' }),
      [content]: {
        status: 200,
        body: [line('1'), { ...line('2'), response: { status_code: 200, body: { model: 'm' } } }]
          .map((one) => JSON.stringify(one))
          .join('\n'),
      },
    });
    await poller.refresh(object());
    expect(settled[0]?.settlements).toMatchObject([{ charged: { tokens: 15 } }]);
    expect(lines).toMatchObject([
      { level: 'warn', fields: { id: 'batch-1', channel: 'a', answers: 1 } },
      { level: 'info' },
    ]);
  });

  test('without results is charged nothing', async () => {
    const { poller, settled, requests } = await stage({
      [path]: { status: 200, body: { id: 'batch-1', status: 'failed' } },
    });
    await poller.refresh(object());
    expect(settled).toMatchObject([{ settlements: [], left: [] }]);
    expect(requests).toHaveLength(1);
  });
});
