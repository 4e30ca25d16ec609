import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as send } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { startAnthropicObjects, type AnthropicObjects } from '../support/anthropic-objects.ts';
import { startOpenaiObjects, type OpenaiObjects } from '../support/openai-objects.ts';
import { startGateways, type RacingGateway } from './gateways.ts';

/** Options for a race for things that providers keep or run. */
export interface ObjectsOptions {
  readonly gateways: number;
  /** Requests of each kind at the same time through each gateway. */
  readonly attempts: number;
  /** Another database than an SQLite file of the race's own. */
  readonly database?: string;
  readonly print?: (line: string) => void;
}

/** Faults of a race. All must be zero. */
export interface ObjectsFaults {
  /** Micro-dollars spent or reserved beyond the budget, at any time that was looked at. */
  readonly overshoot: number;
  /** Reservations that are left when all batches are charged or cancelled. */
  readonly reservations: number;
  /** Batches that the provider has completed and that no record charges, and records without such a batch. */
  readonly uncharged: number;
  /** Micro-dollars by which what is spent differs from the sum of the records. */
  readonly difference: number;
  /** Requests that keys with budgets may not send and that reached a provider. */
  readonly reached: number;
  /** Responses to such requests with another status than 403. */
  readonly unexpected: number;
}

/** Counts of events, to detect a race that tested nothing. */
export interface ObjectsEvents {
  readonly refused: number;
  readonly left: number;
  /** Batches that were created, and creations for which the budget had no room. */
  readonly batches: number;
  readonly withoutRoom: number;
  readonly cancelled: number;
  readonly completed: number;
}

const price = { input: 10, output: 20 };
/** Output limit of the one request of a batch. */
const outputLimit = 1000;
/** Micro-dollars of a batch at half price, without its input. */
const batchCost = (outputLimit * price.output) / 2;
/** Milliseconds after which a race is given up whose batches are not settled. */
const longestWait = 60_000;
/** Milliseconds that the provider takes for a response to clients that leave, and within which these leave. */
const slowness = 150;

const line = JSON.stringify({
  custom_id: 'one',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'race-m', messages: [{ role: 'user', content: 'Hello' }], max_tokens: outputLimit },
});
const boundary = 'race-boundary';
const form = [
  `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n`,
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="b.jsonl"\r\n\r\n${line}\r\n`,
  `--${boundary}--\r\n`,
].join('');

const question = { model: 'race-claude', max_tokens: 40, messages: [{ role: 'user', content: 'Hello' }] };
const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'race-claude' };
const evaluation = { name: 'e', data_source_config: { type: 'custom' } };

/**
 * Sends what keys with budgets may not start, and creates batches, all at once through several gateways on one database. Some clients leave
 * before they are answered. Half of the batches complete, and the others are cancelled.
 */
export async function raceForObjects(
  options: ObjectsOptions,
): Promise<{ readonly faults: ObjectsFaults; readonly events: ObjectsEvents }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-objects-'));
  const database = options.database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(database);
  const [openai, anthropic] = await Promise.all([startOpenaiObjects(), startAnthropicObjects()]);
  let gateways: RacingGateway[] = [];
  try {
    const keys = createApiKeys(stores);
    const total = options.gateways * options.attempts;
    const budget: Budget = {
      unit: 'micro-dollar',
      period: 'total',
      // For about a third of the batches of one heat.
      amount: Math.round((total / 3) * batchCost * 1.05),
    };
    const { value, record } = await keys.create({ name: 'one' });
    gateways = await startGateways(options.gateways, {
      folder,
      database,
      upstream: openai.url,
      messages: anthropic.url,
      lease: 10,
      price,
    });
    const run = new Run({
      gateways,
      openai,
      anthropic,
      stores,
      key: value,
      keyId: record.id,
      budget,
      options,
    });
    await run.prepare(() => keys.update(record.id, { budgets: [budget] }));
    const result = await run.race();
    options.print?.(JSON.stringify(result));
    if (Object.values(result.faults).some((count) => count !== 0))
      for (const { output } of gateways) options.print?.(output.join('').slice(-4000));
    return result;
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await Promise.all([openai.close(), anthropic.close()]);
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RunParts {
  readonly gateways: readonly RacingGateway[];
  readonly openai: OpenaiObjects;
  readonly anthropic: AnthropicObjects;
  readonly stores: Stores;
  readonly key: string;
  readonly keyId: string;
  readonly budget: Budget;
  readonly options: ObjectsOptions;
}

interface Response {
  /** 0 when there was none. */
  readonly status: number;
  readonly id: string;
}

/** Path and body of a request that a key with a budget may not send. */
type Forbidden = readonly [path: string, body: object];

class Run {
  readonly #parts: RunParts;
  #forbidden: readonly Forbidden[] = [];
  #file = '';
  #overshoot = 0;
  #withoutRoom = 0;
  #left = 0;

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  /** Creates what the requests name, while the key has no budget; then waits until every gateway knows the budget. */
  async prepare(limit: () => Promise<unknown>): Promise<void> {
    const [gateway] = this.#parts.gateways;
    if (gateway === undefined) throw new Error('There is no gateway.');
    const idOf = async (path: string, body: object | string): Promise<string> => {
      const { status, id } = await this.#send(gateway, path, body);
      if (status !== 200) throw new Error(`POST ${path} was answered ${status}.`);
      return id;
    };
    this.#file = await idOf('/v1/files', form);
    const anEval = await idOf('/v1/evals', evaluation);
    const aJob = await idOf('/v1/fine_tuning/jobs', { model: 'race-m' });
    this.#forbidden = [
      ['/v1/evals', evaluation],
      [`/v1/evals/${anEval}/runs`, { data_source: { type: 'jsonl' } }],
      ['/v1/fine_tuning/jobs', { model: 'race-m' }],
      [`/v1/fine_tuning/jobs/${aJob}/resume`, {}],
      ['/v1/vector_stores', { name: 'notes' }],
      ['/v1/containers', { name: 'box' }],
      ['/v1/messages', { ...question, tools: [advisor] }],
      ['/v1/messages', { ...question, stream: true, tools: [advisor] }],
    ];
    await limit();
    const deadline = performance.now() + longestWait;
    for (const one of this.#parts.gateways)
      while ((await this.#send(one, '/v1/containers', { name: 'box' })).status !== 403) {
        if (performance.now() > deadline) throw new Error('A gateway does not learn of the budget.');
        await setTimeout(50);
      }
  }

  async race(): Promise<{ readonly faults: ObjectsFaults; readonly events: ObjectsEvents }> {
    const heat = { over: false };
    const looking = (async () => {
      for (; !heat.over; await setTimeout(10)) await this.#look();
    })();
    const { reached, unexpected, refused } = await this.#sendForbidden();
    await this.#createBatches();
    const cancelled = await this.#endBatches(0);
    // What the cancelled ones held is free again: a second heat fights for it, with clients that leave.
    this.#slowDown();
    await this.#createBatches();
    this.#parts.openai.delays = undefined;
    await this.#endBatches(cancelled);
    await this.#settled();
    heat.over = true;
    await looking;
    const { spent } = await this.#look();
    const { count, sum } = await this.#records();
    const batches = [...this.#parts.openai.batches.values()];
    const completed = batches.filter(({ status }) => status === 'completed').length;
    return {
      faults: {
        overshoot: Math.max(0, this.#overshoot),
        reservations: await this.#reservations(),
        uncharged: Math.abs(completed - count),
        difference: Math.abs(spent - sum),
        reached,
        unexpected,
      },
      events: {
        refused,
        left: this.#left,
        batches: batches.length,
        withoutRoom: this.#withoutRoom,
        cancelled: batches.length - completed,
        completed,
      },
    };
  }

  /** Requests that the key may not send, all at once; each fifth client leaves. */
  async #sendForbidden() {
    const { openai, anthropic, gateways, options } = this.#parts;
    const requestCount = () => openai.requests.length + anthropic.requests.length;
    const before = requestCount();
    const statuses = await Promise.all(
      Array.from({ length: options.attempts }, (_, number) =>
        gateways.flatMap((gateway) =>
          this.#forbidden.map(([path, body]) => this.#send(gateway, path, body, number % 5 === 4)),
        ),
      ).flat(),
    );
    const refused = statuses.filter(({ status }) => status === 403).length;
    const left = statuses.filter(({ status }) => status === 0).length;
    this.#left += left;
    return { reached: requestCount() - before, unexpected: statuses.length - refused - left, refused };
  }

  /** The provider takes its time from now on. */
  #slowDown(): void {
    const { openai } = this.#parts;
    openai.delays = setTimeout(slowness);
  }

  async #createBatches(): Promise<void> {
    const { gateways, options, openai } = this.#parts;
    const leaves = openai.delays !== undefined;
    const body = { input_file_id: this.#file, endpoint: '/v1/chat/completions', completion_window: '24h' };
    const answers = await Promise.all(
      Array.from({ length: options.attempts }, (_, number) =>
        gateways.map((gateway) => this.#send(gateway, '/v1/batches', body, leaves && number % 2 === 0)),
      ).flat(),
    );
    this.#withoutRoom += answers.filter(({ status }) => status === 429).length;
    this.#left += answers.filter(({ status }) => status === 0).length;
    await this.#arrived();
  }

  /** Waits until no more batches reach the provider: those of clients that have left still may. */
  async #arrived(): Promise<void> {
    const { batches } = this.#parts.openai;
    for (let before = -1; before !== batches.size; await setTimeout(4 * slowness)) before = batches.size;
  }

  /** Completes the batches that run, but each other one is cancelled by its client. Returns how many batches there are. */
  async #endBatches(from: number): Promise<number> {
    const { openai, gateways } = this.#parts;
    const running = [...openai.batches].slice(from);
    await Promise.all(
      running.map(async ([id, batch], index) => {
        const gateway = gateways[index % gateways.length];
        if (index % 2 === 0 || gateway === undefined) {
          openai.finish(id, () => ({
            object: 'chat.completion',
            model: 'race-m',
            choices: [],
            usage: { prompt_tokens: 5, completion_tokens: outputLimit, total_tokens: 5 + outputLimit },
          }));
          return;
        }
        await this.#send(gateway, `/v1/batches/${id}/cancel`, {});
        batch['status'] = 'cancelled';
      }),
    );
    await this.#settled();
    return openai.batches.size;
  }

  async #settled(): Promise<void> {
    const deadline = performance.now() + longestWait;
    while ((await this.#reservations()) > 0 && performance.now() < deadline) await setTimeout(50);
  }

  async #look() {
    const { stores, keyId, budget } = this.#parts;
    const [state] = await openLedger(stores).states(keyId, [budget]);
    if (state === undefined) throw new Error('The budget has no state.');
    this.#overshoot = Math.max(this.#overshoot, state.spent + state.reserved - budget.amount);
    return state;
  }

  async #records(): Promise<{ readonly count: number; readonly sum: number }> {
    let [count, sum] = [0, 0];
    for await (const { operation, microDollars = 0 } of openUsageLog(this.#parts.stores).each({
      keyId: this.#parts.keyId,
    })) {
      if (operation === 'batch') count += 1;
      sum += microDollars;
    }
    return { count, sum };
  }

  async #reservations(): Promise<number> {
    const { database } = this.#parts.stores;
    const sql = 'SELECT COUNT(*) AS count FROM ledger_reservations';
    const row =
      database.kind === 'sqlite'
        ? database.connection.prepare(sql).get()
        : (await database.query(sql, []))[0];
    return Number(row?.['count']);
  }

  /** Sends one request with the key. `leaves`: the client closes its connection at a random moment. */
  #send({ url }: RacingGateway, path: string, body: object | string, leaves = false): Promise<Response> {
    return new Promise((resolve) => {
      const isForm = typeof body === 'string';
      const request = send(new URL(path, url), {
        method: 'POST',
        agent: false,
        headers: {
          authorization: `Bearer ${this.#parts.key}`,
          'content-type': isForm ? `multipart/form-data; boundary=${boundary}` : 'application/json',
          ...(path === '/v1/messages' ? { 'anthropic-version': '2023-06-01' } : {}),
        },
      });
      let text = '';
      let status = 0;
      request.on('error', () => {});
      request.on('response', (response) => {
        response.on('error', () => {});
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => (status = response.statusCode ?? 0));
      });
      request.on('close', () => resolve({ status, id: /"id":\s*"([\w-]+)"/.exec(text)?.[1] ?? '' }));
      request.end(isForm ? body : JSON.stringify(body));
      if (leaves) void setTimeout(randomInt(slowness)).then(() => request.destroy());
    });
  }
}
