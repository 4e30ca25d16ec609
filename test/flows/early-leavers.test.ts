/* oxlint-disable vitest/expect-expect -- all cases expect the same of the books, which one function reads. */
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Stage } from 'sluice';
import { definePlugin, type Call } from 'sluice/internal';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { openStores } from '../../core/state/stores.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { connectionOf } from '../support/sqlite.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { beginCall, openBooks, type Books } from './_leavers.ts';
import { newDatabases } from './_one-database.ts';
import { voices } from './_wire.ts';

const voice = voices['chat-completions'];
/** Estimated input tokens of the only message, as no provider has told its usage. */
const inputOfOneReading = 5;

/** Stages in which a call can wait, and which plugins stand around the place. */
const places = {
  'in the first plugin': { stage: 'observe', before: ['logging', 'usage-log', 'metrics'] },
  'behind what records calls': { stage: 'observe', after: ['logging', 'usage-log', 'metrics'] },
  'before its key is known': { stage: 'identify', before: ['auth'] },
  'when its key is known': { stage: 'identify', after: ['auth'] },
  'before its budget is reserved': { stage: 'admit', before: ['quota'] },
  'when its budget is reserved': { stage: 'admit', after: ['quota'] },
  'before a channel is chosen': { stage: 'shape' },
  'when a channel is chosen': { stage: 'translate' },
} as const satisfies Readonly<
  Record<
    string,
    { readonly stage: Stage; readonly before?: readonly string[]; readonly after?: readonly string[] }
  >
>;
type HoldPoint = keyof typeof places;
const holdPoints = Object.keys(places) as HoldPoint[];

let held: HoldPoint | undefined;
let onHeld = (): void => {};
/** `until its end`: the call goes on in the moment in which it ends. */
let holds: 'until its end' | 'not at all' = 'until its end';

/** Plugins of an operator that stop a call at a place until its client has left. */
const holders = holdPoints.map((name, index) =>
  definePlugin({
    name: `holder-${index}`,
    ...places[name],
    setup: () => async (call: Call, next) => {
      if (held === name) {
        onHeld();
        if (holds === 'until its end') await new Promise<void>((resolve) => call.onEnd(resolve));
      }
      return next(call);
    },
  })(),
);

let upstream: ScriptedUpstream;
let answer: (response: ServerResponse, stream: boolean) => void = () => {};
let onRequest = (): void => {};
/** The status of the channel that refuses every call. */
let refuses = 429;
beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    if (request.url.startsWith('/refusing/')) {
      response.writeHead(refuses, { 'content-type': 'application/json' }).end('{"error":{"message":"No."}}');
      return;
    }
    onRequest();
    answer(response, /"stream":\s*true/.test(request.body.toString()));
  });
});
afterAll(() => upstream.close());
afterEach(() => {
  held = undefined;
  holds = 'until its end';
  answer = () => {};
});

const wholeReply = (response: ServerResponse, stream: boolean): void => {
  if (stream)
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(voice.frames(['one', 'two', 'three']).join(''));
  else
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(voice.whole('one')));
};

describe.each(newDatabases())('on $kind', ({ kind, url, skip }) => {
  let database: string;
  let gateway: TestGateway;
  let books: Books;
  let budgeted: { readonly id: string; readonly value: string };
  let checked = 0;
  /** Failures that the metrics told of earlier calls. */
  const counted = new Set<string>();

  beforeAll(async () => {
    if (skip !== undefined) return;
    database = await url();
    gateway = await startGateway({
      database,
      channels: [
        voice.channel(`${upstream.url}/refusing`, { id: 'refusing', priority: 1, models: ['two-channels'] }),
        voice.channel(upstream.url, { models: ['m', 'two-channels'] }),
      ],
      health: { enabled: false },
      prices: { '*': { input: 1, output: 1 } },
      plugins: holders,
    });
    books = openBooks(database);
    const { record, value } = await gateway.apiKeys.create({
      name: 'budgeted',
      budgets: [{ unit: 'token', period: 'total', amount: 100_000_000 }],
    });
    budgeted = { id: record.id, value };
  });
  afterAll(async () => {
    if (skip !== undefined) return;
    await books.close();
    await gateway.close();
  });

  const begin = (stream: boolean, paying: boolean, body: 'all' | 'half' | 'none' = 'all'): ClientRequest =>
    beginCall(
      { url: gateway.url, key: paying ? budgeted.value : gateway.key },
      { ...voice.body('m', stream), max_tokens: 50 },
      {},
      body,
    );

  /** The record of the call that has just ended, when nothing is reserved any more. */
  const recorded = async (): Promise<UsageRecord> => {
    checked += 1;
    await expect.poll(async () => (await books.records()).length).toBe(checked);
    await expect.poll(() => books.reservations()).toBe(0);
    const record = (await books.records()).at(-1);
    if (record === undefined) throw new Error('There is no record.');
    return record;
  };

  /** The usage log, the log and the metrics say that the client left, and nothing failed. */
  const expectLeft = async (record: UsageRecord): Promise<void> => {
    const { status, ended, code, reason } = record;
    expect({ status, ended, code, reason }).toEqual({ status: 499, ended: 'left' });
    const own = gateway.lines.filter(({ id }) => id === record.id);
    expect(own).toMatchObject([{ ended: 'left', status: 499 }]);
    expect(gateway.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    const failed = metrics
      .split('\n')
      .filter((line) =>
        /^sluice_calls_total.*(5xx|code="\w)|^sluice_end_of_call_errors_total [^0]/.test(line),
      );
    expect(failed.filter((line) => !counted.has(line))).toEqual([]);
    for (const line of failed) counted.add(line);
  };

  const cases = holdPoints.flatMap((name) =>
    [true, false].flatMap((stream) => [true, false].map((paying) => [name, stream, paying] as const)),
  );
  test.skipIf(skip !== undefined).each(cases)(
    'a call that is left %s is recorded as left, and reserves nothing (stream: %s, with a budget: %s)',
    async (name, stream, paying) => {
      gateway.lines.length = 0;
      held = name;
      const reached = new Promise<void>((resolve) => (onHeld = resolve));
      const request = begin(stream, paying);
      await reached;
      request.destroy();
      const record = await recorded();
      await expectLeft(record);
      expect(record).toMatchObject({ input: 0, output: 0 });
    },
  );

  test.skipIf(skip !== undefined).each(['none', 'half'] as const)(
    'a call that is left before its body was sent (sent: %s) is recorded as left, and reserves nothing',
    async (body) => {
      gateway.lines.length = 0;
      held = 'when its key is known';
      holds = 'not at all';
      const reached = new Promise<void>((resolve) => (onHeld = resolve));
      const request = begin(true, true, body);
      await reached;
      request.destroy();
      await expectLeft(await recorded());
    },
  );

  test.skipIf(skip !== undefined)('a call that is left while its budget is being reserved', async () => {
    gateway.lines.length = 0;
    held = 'before its budget is reserved';
    holds = 'not at all';
    const reached = new Promise<void>((resolve) => (onHeld = resolve));
    const unlock = await lock(kind, database);
    const request = begin(true, true);
    await reached;
    await setTimeout(30);
    request.destroy();
    await setTimeout(30);
    await unlock();
    await expectLeft(await recorded());
    expect(await books.spent(budgeted.id)).toBe(0);
  });

  const moments = [
    ['before the provider’s head', () => {}],
    [
      'between the provider’s head and its first byte',
      (response: ServerResponse) =>
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    ],
  ] as const;
  test.skipIf(skip !== undefined).each(moments)(
    'a call that is left %s pays for what the provider had to read, once',
    async (_when, says) => {
      gateway.lines.length = 0;
      answer = says;
      const before = await books.spent(budgeted.id);
      const requested = new Promise<void>((resolve) => (onRequest = resolve));
      const request = begin(true, true);
      await requested;
      await setTimeout(30);
      request.destroy();
      const record = await recorded();
      await expectLeft(record);
      expect(record).toMatchObject({ input: inputOfOneReading, output: 0 });
      expect((await books.spent(budgeted.id)) - before).toBe(record.input + record.output);
    },
  );

  test.skipIf(skip !== undefined).each([429, 500, 503])(
    'a call that is left behind another channel’s %i pays for one reading',
    async (status) => {
      gateway.lines.length = 0;
      refuses = status;
      const before = await books.spent(budgeted.id);
      const requested = new Promise<void>((resolve) => (onRequest = resolve));
      const content = { ...voice.body('two-channels', true), max_tokens: 50 };
      const request = beginCall({ url: gateway.url, key: budgeted.value }, content);
      await requested;
      await setTimeout(30);
      request.destroy();
      const record = await recorded();
      expect(record).toMatchObject({ status: 499, ended: 'left', input: inputOfOneReading, output: 0 });
      expect((await books.spent(budgeted.id)) - before).toBe(inputOfOneReading);
    },
  );

  test.skipIf(skip !== undefined)(
    'a call that is left in the middle of its stream pays for that',
    async () => {
      gateway.lines.length = 0;
      answer = (response) =>
        void response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write(voice.frames(['one', 'two', 'three']).slice(0, 3).join(''));
      const before = await books.spent(budgeted.id);
      const request = begin(true, true);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.on('error', () => {});
      await once(response, 'data');
      request.destroy();
      const record = await recorded();
      expect(record).toMatchObject({ status: 200, ended: 'left' });
      expect(record.code).toBeUndefined();
      expect((await books.spent(budgeted.id)) - before).toBe(record.input + record.output);
    },
  );

  test.skipIf(skip !== undefined)(
    'a client that leaves behind the last byte has had its answer',
    async () => {
      answer = wholeReply;
      const before = await books.spent(budgeted.id);
      const request = begin(true, true);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      for await (const chunk of response) void chunk;
      request.destroy();
      const record = await recorded();
      expect(record).toMatchObject({ status: 200, ended: 'complete', input: 5, output: 7 });
      expect((await books.spent(budgeted.id)) - before).toBe(12);
    },
  );
});

/** Keeps everybody else from reserving until the returned function is called. */
async function lock(kind: 'SQLite' | 'PostgreSQL', url: string): Promise<() => Promise<void>> {
  if (kind === 'SQLite') {
    const stores = openStores(url);
    connectionOf(stores).exec('BEGIN IMMEDIATE');
    return async () => {
      connectionOf(stores).exec('ROLLBACK');
      await stores.close();
    };
  }
  const client = new Client({ connectionString: url.replace(/\?.*$/, '') });
  await client.connect();
  await client.query('BEGIN');
  await client.query('LOCK TABLE ledger_reservations IN EXCLUSIVE MODE');
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}
