import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as send, type ClientRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { startGateways, type RacingGateway } from './gateways.ts';
import { startProvider, type RacingProvider } from './provider.ts';

/** Options for a run of early leavers. */
export interface LeaversOptions {
  readonly leavers: number;
  /** Another database than an SQLite file of the run's own. */
  readonly database?: string;
  /** Redis for rates and concurrency. Default: none. */
  readonly redis?: string | SharedStoreSettings;
  /** Is called in the middle, when the gateway is reloaded. */
  readonly atHalf?: () => void;
  readonly print?: (line: string) => void;
}

/** Faults of a run. All must be zero. */
export interface LeaversFaults {
  /** Records with a status from 500 on, or with an error of the gateway's. */
  readonly recorded: number;
  /** Calls that `/metrics` counts as 5xx, of the workers before the reload too. */
  readonly counted: number;
  /** Calls that the log says were 5xx. */
  readonly logged: number;
  /**
   * Lines of the log about errors, such as work at the end of a call. Those that say that Redis does not answer in time are none: the gateway
   * counts by itself until Redis is back, and breaks no promise.
   */
  readonly errors: number;
  /** Calls that were refused because of permits that calls before them did not release. */
  readonly refused: number;
  /** Reservations that are left in the end. */
  readonly reservations: number;
  /** Micro-dollars by which what is spent differs from the sum of the records. */
  readonly difference: number;
}

/** Counts of events, to detect a run that tested nothing. */
export interface LeaversEvents {
  readonly records: number;
  /** Records of calls that their clients left. */
  readonly left: number;
  /** Calls that `/metrics` counts as left, and those that the log says were. */
  readonly countedLeft: number;
  readonly loggedLeft: number;
  /** Largest number of reservations that were seen at one time. */
  readonly reserved: number;
  readonly reloads: number;
  /** Number of times that Redis did not respond in time. */
  readonly redisLost: number;
}

const price = { input: 10, output: 20 };
/** Seconds. Longer than the wait at the end, so that a reservation that nobody gives back is seen. */
const lease = 600;
const atOnce = 50;
/** Milliseconds within which a client leaves after a moment: its provider answers after 100 to 300, and streams for as long. */
const longestStay = 300;
/** Milliseconds that a client waits for such a moment at most. */
const longestWait = 5_000;
/** Enough for all calls at once, unless calls that have ended keep their permits. */
const concurrency = 500;
const requestsPerMinute = 1_000_000;
const ample: Budget = { unit: 'micro-dollar', period: 'total', amount: 1_000_000_000_000 };

/**
 * Sends calls whose clients leave at random moments: streams and whole replies, in two formats, with and without a budget, with a reload of
 * the gateway in the middle.
 */
export async function runLeavers(
  options: LeaversOptions,
): Promise<{ readonly faults: LeaversFaults; readonly events: LeaversEvents }> {
  const { database, redis, print = () => {} } = options;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-leavers-'));
  const url = database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(url);
  const provider = await startProvider();
  const shared = { folder, database: url, upstream: provider.url, lease, price, logLevel: 'info' } as const;
  let gateways: RacingGateway[] = [];
  try {
    // Before the gateway starts, because a running one learns of new keys within about a second.
    const keys = await createKeys(stores);
    gateways = await startGateways(1, redis === undefined ? shared : { ...shared, redis });
    const [gateway] = gateways;
    if (gateway === undefined) throw new Error('There is no gateway.');
    const result = await new Run(gateway, provider, stores, keys).leave(options.leavers, options.atHalf);
    print(JSON.stringify(result));
    // What they say is all that is left of a fault that comes by chance.
    if (Object.values(result.faults).some((count) => count !== 0))
      process.stdout.write(`${JSON.stringify(result)}\n${suspectLines(gateway)}\n`);
    return result;
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.close();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface LeaversKeys {
  readonly secrets: readonly string[];
  /** Id of the key that has a budget. */
  readonly budgeted: string;
}

async function createKeys(stores: Stores): Promise<LeaversKeys> {
  const keys = createApiKeys(stores);
  const budgeted = await keys.create({ name: 'budgeted', budgets: [ample], concurrency, requestsPerMinute });
  const free = await keys.create({ name: 'free', concurrency, requestsPerMinute });
  return { secrets: [budgeted.value, free.value], budgeted: budgeted.record.id };
}

/** One gateway, and the calls that are sent to it. */
class Run {
  readonly #gateway: RacingGateway;
  readonly #provider: RacingProvider;
  readonly #stores: Stores;
  readonly #keys: LeaversKeys;
  #reserved = 0;

  constructor(gateway: RacingGateway, provider: RacingProvider, stores: Stores, keys: LeaversKeys) {
    this.#gateway = gateway;
    this.#provider = provider;
    this.#stores = stores;
    this.#keys = keys;
  }

  async leave(
    leavers: number,
    atHalf: () => void = () => {},
  ): Promise<{ readonly faults: LeaversFaults; readonly events: LeaversEvents }> {
    const isOver = new AbortController();
    const watching = this.#watchReservations(isOver.signal);
    await this.#sendAll(leavers, atHalf);
    isOver.abort();
    await watching;
    await this.#settled();
    return this.#look();
  }

  async #watchReservations(isOver: AbortSignal): Promise<void> {
    for (; !isOver.aborted; await setTimeout(50))
      this.#reserved = Math.max(this.#reserved, await reservationsIn(this.#stores));
  }

  /** Sends all calls, so many at once, and reloads the gateway in the middle. */
  async #sendAll(leavers: number, atHalf: () => void): Promise<void> {
    let next = 0;
    const sender = async (): Promise<void> => {
      for (let number = next++; number < leavers; number = next++) {
        if (number === Math.floor(leavers / 2)) {
          this.#gateway.reload();
          atHalf();
        }
        await this.#leaveOne(number);
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, leavers) }, sender));
  }

  /**
   * Makes one call and leaves it at a random time after the call has begun, after its provider was asked, or after the head of its response.
   * Some clients send half of the body, and some close only their own side.
   */
  async #leaveOne(number: number): Promise<void> {
    const { secrets } = this.#keys;
    const key = secrets[number % secrets.length] ?? '';
    const request = begin(this.#gateway.url, key, number);
    const closed = new Promise<void>((resolve) => request.once('close', resolve));
    const moments = [
      () => undefined,
      () => this.#provider.waitForRequest(number),
      () => new Promise<void>((resolve) => request.once('response', () => resolve())),
    ];
    const moment = isHalf(number) ? undefined : moments[Math.floor(number / 4) % moments.length];
    await Promise.race([moment?.(), closed, setTimeout(longestWait)]);
    await Promise.race([setTimeout(randomInt(longestStay)), closed]);
    if (number % 5 === 0) request.socket?.end();
    else request.destroy();
    await Promise.race([closed, setTimeout(1_000)]);
    request.destroy();
  }

  /** Waits until nothing is reserved and no more is recorded, or for a minute. */
  async #settled(): Promise<void> {
    const deadline = performance.now() + 60_000;
    let before = -1;
    while (performance.now() < deadline) {
      const { records } = await recordsIn(this.#stores);
      if (records === before && (await reservationsIn(this.#stores)) === 0) return;
      before = records;
      await setTimeout(1_000);
    }
  }

  async #look(): Promise<{ readonly faults: LeaversFaults; readonly events: LeaversEvents }> {
    const { records, left, failed, refused, costs } = await recordsIn(this.#stores);
    const counts = await countsOf(this.#gateway);
    const { budgeted } = this.#keys;
    const states = await openLedger(this.#stores).states(budgeted, [ample]);
    const spent = states.reduce((sum, state) => sum + state.spent, 0);
    const lines = this.#gateway.output.join('').split('\n');
    const linesWith = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
    const redisLost = lines.filter(isRedisLost).length;
    const errors = lines.filter((line) => /"level":"(?:error|fatal)"/.test(line) && !isRedisLost(line));
    return {
      faults: {
        recorded: failed,
        counted: counts.failed,
        logged: linesWith(/"status":5\d\d/),
        errors: errors.length,
        refused,
        reservations: await reservationsIn(this.#stores),
        difference: Math.abs(spent - (costs.get(budgeted) ?? 0)),
      },
      events: {
        records,
        left,
        countedLeft: counts.left,
        loggedLeft: linesWith(/"ended":"left"/),
        reserved: this.#reserved,
        reloads: linesWith(/"msg":"reloading"/),
        redisLost,
      },
    };
  }
}

/** True for a line that says that the gateway counts by itself because Redis does not answer. */
function isRedisLost(line: string): boolean {
  return (
    line.includes('"msg":"the shared store does not respond"') &&
    line.includes('"level":"error"') &&
    line.includes('"whenDown":"local"')
  );
}

/** True when the client of this call sends only half of its body. */
function isHalf(number: number): boolean {
  return number % 7 === 0;
}

function begin(url: string, key: string, number: number): ClientRequest {
  const foreign = Math.floor(number / 4) % 5 === 0;
  const body = JSON.stringify({
    model: 'race-m',
    stream: Math.floor(number / 2) % 2 === 0,
    max_tokens: 40,
    messages: [{ role: 'user', content: `call-${number}-fine` }],
  });
  const request = send(new URL(foreign ? '/v1/messages' : '/v1/chat/completions', url), {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(foreign ? { 'anthropic-version': '2023-06-01' } : {}),
    },
  });
  request.on('error', () => {});
  request.on('response', (response) => response.on('error', () => {}).resume());
  if (isHalf(number)) request.write(body.slice(0, body.length / 2));
  else request.end(body);
  return request;
}

async function recordsIn(stores: Stores) {
  const found = { records: 0, left: 0, failed: 0, refused: 0, costs: new Map<string, number>() };
  for await (const { status, code, ended, keyId = '', microDollars = 0 } of openUsageLog(stores).each({})) {
    found.records += 1;
    found.costs.set(keyId, (found.costs.get(keyId) ?? 0) + microDollars);
    if (ended === 'left') found.left += 1;
    if (status >= 500 || code === 'internal_error') found.failed += 1;
    if (status === 429) found.refused += 1;
  }
  return found;
}

/** Returns how many calls the gateway's metrics count as failed by its own fault, and as left. */
async function countsOf({ url }: RacingGateway): Promise<{ readonly failed: number; readonly left: number }> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const sumOf = (status: string): number =>
    [...text.matchAll(/^sluice_calls_total\{([^}]*)\} (\d+)$/gm)]
      .filter(([, labels = '']) => labels.includes(`status="${status}"`))
      .reduce((sum, [, , count]) => sum + Number(count), 0);
  return { failed: sumOf('5xx'), left: sumOf('left') };
}

async function reservationsIn({ database }: Stores): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM ledger_reservations';
  const row =
    database.kind === 'sqlite' ? database.connection.prepare(sql).get() : (await database.query(sql, []))[0];
  return Number(row?.['count']);
}

/** Returns the last lines of a gateway's log that say more than that a call has ended well. */
function suspectLines({ output }: RacingGateway): string {
  const suspect = output
    .join('')
    .split('\n')
    .filter((line) => /"status":5\d\d|"level":"(?:warn|error|fatal)"/.test(line));
  return suspect.slice(-20).join('\n');
}
