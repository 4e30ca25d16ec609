import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { ApiKeys } from '../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { type ApiKey } from '../../core/sdk/api-key.ts';
import type { Budget, HeldBudget } from '../../core/sdk/budget.ts';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { endUserBudgets } from '../../core/money/account/attribution.ts';
import type { BudgetState } from '../../core/money/ledger/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { makeCall, type Seen } from './callers.ts';
import { judged, type Look, type Refusal } from './fairness.ts';
import { startGateways, type RacingGateway } from './gateways.ts';
import { mostOutput, startProvider, tried, type Fate, type RacingProvider } from './provider.ts';

/** Options of a race. */
export interface RaceOptions {
  readonly gateways: number;
  /** Calls at the same time through each gateway. */
  readonly calls: number;
  /** Another database than an SQLite file of the race's own. */
  readonly database?: string;
  /** Redis that the gateways share. Default: none. */
  readonly redis?: SharedStoreSettings;
  /** Leaves out the heats of one key alone. Default: false. */
  readonly levelsOnly?: boolean;
  readonly print?: (line: string) => void;
}

/** Counts that must be zero. */
export interface Outcome {
  /**
   * Micro-dollars spent or reserved beyond a budget, at the end or at any time in between that was looked at; without those that a
   * provider gave beyond the limit that it was asked to keep.
   */
  readonly overshoot: number;
  /** Claims that nobody has settled or swept. */
  readonly unsettled: number;
  /** Calls without a record, and micro-dollars by which what is spent differs from the sum of the records, at each level. */
  readonly unrecorded: number;
  /** Calls that were refused while all that stood in their way was reserved ahead for others. */
  readonly unfair: number;
}

const price = { input: 10, output: 20 };
/** Micro-dollars of an ordinary call: about 75 tokens in, 30 out. */
const ordinary = 75 * price.input + 30 * price.output;
/** Seconds. Short, so that the claims of the gateway that is killed are swept soon. */
const lease = 10;

/**
 * Many calls at once through several gateways with one key; then again with a provider that ignores limits, and with one of the gateways
 * killed in the middle.
 */
export async function race({
  gateways: count,
  calls,
  database,
  redis,
  levelsOnly = false,
  print = () => {},
}: RaceOptions): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-race-'));
  const url = database ?? `sqlite:${join(folder, 'sluice.db')}`;
  const stores = openStores(url);
  const provider = await startProvider();
  let gateways: RacingGateway[] = [];
  try {
    const total = count * calls;
    const budget: Budget = {
      unit: 'micro-dollar',
      period: 'total',
      amount: Math.round((total / 3) * ordinary),
    };
    const keys = createApiKeys(stores);
    const key = (name: string) => keys.create({ name, budgets: [budget] });
    // Before the gateways start: they follow new keys within a second, and nobody waits for that here.
    const [first, second] = [await key('first'), await key('second')];
    const levels = await levelsOf(keys, budget);
    const others = await levelsOf(keys, budget);
    gateways = await startGateways(count, {
      folder,
      database: url,
      upstream: provider.url,
      lease,
      price,
      ...(redis === undefined ? {} : { redis }),
    });
    const heat = async (title: string, more: Pick<Heat, 'keys'> & Partial<Heat>) => {
      const began = performance.now();
      const outcome = await runHeat({ stores, gateways, provider, calls, ...more });
      print(`${title}: ${outcome.line}, ${((performance.now() - began) / 1000).toFixed(1)} s`);
      return outcome;
    };
    const ofOneKey = levelsOnly
      ? []
      : [
          await heat(`${total} calls, ${count} gateways`, { keys: [first] }),
          await heat(`${total} calls, a provider that ignores limits`, { keys: [second], ignoring: true }),
        ];
    const outcomes = [
      ...ofOneKey,
      await heat(`${total} calls of four keys of one team, budgets at three levels`, levels),
      await heat(`${total} calls of four such keys, one of ${count} gateways killed`, {
        ...others,
        killed: gateways[0],
      }),
    ];
    const sum = (name: keyof Outcome): number => outcomes.reduce((all, outcome) => all + outcome[name], 0);
    const result = {
      overshoot: sum('overshoot'),
      unsettled: sum('unsettled'),
      unrecorded: sum('unrecorded'),
      unfair: sum('unfair'),
    };
    if (Object.values(result).some((number) => number > 0))
      for (const { output } of gateways) print(output.join(''));
    return result;
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await provider.close();
    await stores.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RacingKey {
  readonly record: ApiKey;
  readonly value: string;
  /** Callers in order. */
  readonly endUsers?: readonly string[];
}

/** Pricing of a team, which changes what its budgets and those of its organisation are charged. */
const pricing = { factor: 1.3 };

/**
 * Keys of one team, whose rolling hour they fight for; budgets of each key and of the organisation, in several periods and units, are a little
 * larger than what each is likely to get. The team is charged by a price of its own. One key has end users with a budget, of whom one makes most
 * of its calls. Rates are limited at each level, beyond what is called.
 */
async function levelsOf(keys: ApiKeys, budget: Budget): Promise<Pick<Heat, 'keys' | 'factor'>> {
  const amount = Math.round(budget.amount * pricing.factor);
  const dollars = (factor: number, period: 'hours' | 'day' | 'month' | 'total', hours?: number): Budget => ({
    unit: 'micro-dollar',
    period,
    ...(hours === undefined ? {} : { hours }),
    amount: Math.round(amount * factor),
  });
  const rates = { requestsPerMinute: 1e6, tokensPerMinute: 1e9, concurrency: 1e5 };
  const { id: organisation } = await keys.owners.create({
    kind: 'organisation',
    name: 'o',
    budgets: [dollars(1.2, 'hours', 5), dollars(1.2, 'month')],
    ...rates,
  });
  const { id: team } = await keys.owners.create({
    kind: 'team',
    name: 't',
    organisation,
    budgets: [dollars(1, 'hours', 1), { unit: 'token', period: 'day', amount: 1e9 }],
    pricing,
    ...rates,
  });
  const names = ['one', 'two', 'three', 'four'];
  const made = await Promise.all(
    names.map(async (name): Promise<RacingKey> => {
      const isShop = name === 'four';
      const { value, record } = await keys.create({
        name,
        team,
        budgets: [dollars(1.3 / names.length, 'hours', 2), dollars(2 / names.length, 'total')],
        callTags: true,
        tags: ['race'],
        ...rates,
        ...(isShop ? { endUserBudget: { ...dollars(0.1, 'day'), period: 'day' } } : {}),
      });
      return {
        value,
        record: keys.owners.effective(record),
        ...(isShop ? { endUsers: ['greedy', 'greedy', 'modest'] } : {}),
      };
    }),
  );
  return { keys: made, factor: pricing.factor };
}

interface Heat {
  readonly stores: Stores;
  readonly gateways: readonly RacingGateway[];
  readonly calls: number;
  readonly provider: RacingProvider;
  /** Calls are made with one after the other. */
  readonly keys: readonly RacingKey[];
  /** By which the cost of calls is multiplied for budgets. */
  readonly factor?: number;
  /** The gateway that is killed. */
  readonly killed?: RacingGateway | undefined;
  /** Some calls are given more than they ask for. */
  readonly ignoring?: boolean;
}

/** A budget that is looked at, and which calls must fit in it. */
interface Watched {
  readonly budget: HeldBudget;
  readonly keyId: string;
  /** Absent: those of all keys. */
  readonly key?: RacingKey;
  readonly endUser?: string;
}

/** Returns the budgets of keys, of their end users and of their owners, each once. */
function watchedOf(keys: readonly RacingKey[]): readonly Watched[] {
  const watched = new Map<string, Watched>();
  for (const key of keys) {
    const { record } = key;
    const { id: keyId } = record;
    const add = (budget: HeldBudget, more: Partial<Watched>): void => {
      const { owner, unit, period, hours } = budget;
      watched.set(`${owner?.id ?? keyId} ${unit} ${period} ${hours}`, { budget, keyId, ...more });
    };
    for (const budget of record.budgets ?? []) add(budget, budget.owner === undefined ? { key } : {});
    for (const endUser of new Set(key.endUsers))
      for (const budget of endUserBudgets(record, endUser)) add(budget, { key, endUser });
  }
  return [...watched.values()];
}

/** The most that a call may come to, with some room: bytes of its input, and its output limits. */
function mostOf({ unit }: HeldBudget, fate: Fate, factor: number): number {
  const input = fate === 'gives-up' ? 2_300 : 400;
  const output = fate === 'best' ? tried * mostOutput : mostOutput;
  return unit === 'token'
    ? input + output
    : Math.ceil((input * price.input + output * price.output) * factor);
}

async function runHeat({
  stores,
  gateways,
  provider,
  calls,
  keys,
  factor = 1,
  killed,
  ignoring = false,
}: Heat): Promise<Outcome & { readonly line: string }> {
  const ledger = openLedger(stores);
  const usageLog = openUsageLog(stores);
  const watched = watchedOf(keys);
  let mostAhead = 0;
  const mostOver = watched.map(() => 0);
  const before = provider.beyond;
  const looks: Look[] = [];
  const look = async (): Promise<readonly number[]> => {
    const all = new Map<Watched, BudgetState>();
    for (const keyId of new Set(watched.map((one) => one.keyId))) {
      const own = watched.filter((one) => one.keyId === keyId);
      const budgets = own.map(({ budget }) => budget);
      for (const [index, state] of (await ledger.states(keyId, budgets)).entries()) {
        const one = own[index];
        if (one !== undefined) all.set(one, state);
      }
    }
    const states = watched.flatMap((one) => all.get(one) ?? []);
    for (const [index, { spent, reserved, ahead, amount }] of states.entries()) {
      mostOver[index] = Math.max(mostOver[index] ?? 0, spent + reserved + ahead - amount);
      mostAhead = Math.max(mostAhead, ahead);
    }
    looks.push({ at: performance.now(), used: states.map(({ spent, reserved }) => spent + reserved) });
    return states.map(({ spent }) => spent);
  };
  const heat = { over: false, called: false };
  const looking = (async () => {
    for (; !heat.over; await setTimeout(25)) await look();
  })();

  const seen: (Seen & { readonly gateway: RacingGateway })[] = [];
  const refusals: Refusal[] = [];
  /** Repeats a refused call when other calls have ended, so that callers compete for the last of the budget. */
  const persist = async (gateway: RacingGateway, number: number): Promise<void> => {
    const { stream, fate } = shapeOf(number, killed !== undefined, ignoring);
    for (let tries = 0; tries < 4; tries += 1) {
      const key = keys[number % keys.length];
      if (key === undefined) return;
      const endUser = key.endUsers?.[Math.floor(number / keys.length) % key.endUsers.length];
      const from = performance.now();
      const one = await makeCall(gateway.url, key.value, { number, stream, fate }, provider, {
        ...(endUser === undefined ? {} : { endUser }),
        ...(key.record.callTags === true ? { tags: `call ${number % 5}` } : {}),
      });
      seen.push({ ...one, gateway });
      if (one.status !== 429) return;
      const needs = new Map(
        watched.flatMap((each, index) =>
          (each.key ?? key) === key && (each.endUser ?? endUser) === endUser
            ? [[index, mostOf(each.budget, fate, factor)] as const]
            : [],
        ),
      );
      refusals.push({ from, until: performance.now(), needs });
      await setTimeout(400 + (number % 7) * 50);
    }
  };
  const callers = Array.from({ length: calls }, (_, number) =>
    gateways.map((gateway, index) => persist(gateway, number * gateways.length + index)),
  ).flat();
  const answering = Promise.all(callers).then(() => (heat.called = true));
  let killedAt = 0;
  if (killed !== undefined) {
    // In the middle: it has delivered some answers, and others run.
    const delivers = ({ gateway, status }: (typeof seen)[number]): boolean =>
      gateway === killed && status === 200;
    while (!heat.called && seen.filter(delivers).length < 5) await setTimeout(5);
    killedAt = performance.now();
    await killed.kill();
  }
  await answering;

  const counted =
    killed === undefined ? seen : seen.filter(({ gateway, id }) => gateway !== killed && id !== undefined);
  const claims = async (): Promise<number> => {
    const counts = await Promise.all(keys.map(({ record }) => claimsIn(stores, record.id)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const recorded = async (): Promise<ReadonlyMap<string, UsageRecord>> => {
    const found = new Map<string, UsageRecord>();
    for (const { record: key } of keys)
      for await (const record of usageLog.each({ keyId: key.id })) found.set(record.id, record);
    return found;
  };
  const missing = (records: ReadonlyMap<string, UsageRecord>): number =>
    killed === undefined
      ? seen.length - records.size
      : counted.filter(({ id }) => !records.has(id ?? '')).length;

  const deadline = performance.now() + 60_000;
  let records = await recorded();
  while ((missing(records) > 0 || (await claims()) > 0) && performance.now() < deadline) {
    await setTimeout(100);
    records = await recorded();
  }
  heat.over = true;
  await looking;
  const spent = await look();
  const chargeOf = ({ budget: { unit } }: Watched, record: UsageRecord): number =>
    unit === 'token'
      ? record.input + record.output
      : (record.chargedMicroDollars ?? record.microDollars ?? 0);
  const sums = watched.map((one) =>
    [...records.values()]
      .filter(
        ({ keyId, endUser }) =>
          (one.key?.record.id ?? keyId) === keyId && (one.endUser ?? endUser) === endUser,
      )
      .reduce((sum, record) => sum + chargeOf(one, record), 0),
  );
  const difference = sums.reduce((all, sum, index) => all + Math.abs(sum - (spent[index] ?? 0)), 0);
  const unsettled = await claims();
  const answered = seen.filter(({ status }) => status === 200).length;
  const refused = seen.filter(({ status }) => status === 429).length;
  const beyond = Math.ceil((provider.beyond - before) * price.output * factor);
  const overshoot = Math.max(...mostOver);
  // What the one that was killed had reserved ahead is held until its lease is over.
  const isHeld = ({ until, from }: Refusal): boolean =>
    killed !== undefined && until > killedAt - 1_000 && from < killedAt + 1_000 * (lease + 5);
  const { unfair, unjudged } = judged(
    looks,
    refusals.filter((one) => !isHeld(one)),
    watched.map(({ budget }) => budget.amount),
  );
  const delivered = seen.filter(
    ({ gateway, deliveredAt }) => gateway === killed && deliveredAt !== undefined,
  );
  const lost = delivered.filter(({ status, id }) => status === 200 && !records.has(id ?? ''));
  const oldest = Math.max(0, ...lost.map(({ deliveredAt = killedAt }) => killedAt - deliveredAt));
  const losses = `; it had delivered ${delivered.length}, of which ${lost.length} were lost, the oldest ${Math.ceil(oldest)} ms before`;
  const shares = gateways.map(
    (one) => seen.filter(({ gateway, status }) => gateway === one && status === 200).length,
  );
  const fairness = `, answered by each ${shares.join(', ')}, reserved ahead ${mostAhead} at the most, refused without need ${unfair} of ${refusals.length}${unjudged === 0 ? '' : ` (${unjudged} not judged: too few looks)`}`;
  const overshootText = ignoring
    ? `, overshoot ${Math.max(0, overshoot)}, beyond the limit asked ${beyond}`
    : '';
  const fullest = watched
    .map(({ budget }, index) => ({ budget, spent: spent[index] ?? 0 }))
    .toSorted((one, other) => other.spent / other.budget.amount - one.spent / one.budget.amount)[0];
  return {
    overshoot: Math.max(0, overshoot - beyond),
    unsettled,
    unrecorded: Math.max(0, missing(records)) + difference,
    unfair,
    line: `${answered} answered, ${refused} refused, ${othersOf(seen)} otherwise; ${watched.length} budgets, of the fullest ${fullest?.spent} of ${fullest?.budget.amount} spent; ${records.size} records, difference ${difference}${fairness}${overshootText}${killed === undefined ? '' : losses}`,
  };
}

/** Tells how many calls had each other status; 0 is no answer. */
function othersOf(seen: readonly Seen[]): string {
  const counts = new Map<number, number>();
  for (const { status } of seen)
    if (status !== 200 && status !== 429) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} × ${status}`).join(', ') || '0';
}

/** Half are streams. Nobody leaves without an id where one gateway's calls are not counted. */
function shapeOf(
  number: number,
  idsNeeded: boolean,
  ignoring: boolean,
): { readonly stream: boolean; readonly fate: Fate } {
  const stream = number % 2 === 0;
  const [streamed, whole] = shapes[Math.floor(number / 2) % shapes.length] ?? ['fine', 'fine'];
  const fate = stream ? streamed : whole;
  if (fate === 'gives-up' && idsNeeded) return { stream, fate: 'fine' };
  return { stream, fate: fate === 'fine' && ignoring ? 'ignores' : fate };
}

/** Fates of calls, of streams and of non-streamed replies. */
const shapes: readonly (readonly [streamed: Fate, whole: Fate])[] = [
  ['fails', 'fails'],
  ['breaks', 'fine'],
  ['leaves', 'gives-up'],
  ['untold', 'untold'],
  ['both', 'both'],
  ['fine', 'best'],
  ['fine', 'fine'],
  ['fine', 'fine'],
];

async function claimsIn({ database }: Stores, keyId: string): Promise<number> {
  const ofOwners =
    'SELECT COUNT(*) FROM ledger_owner_reservations WHERE id NOT IN (SELECT id FROM ledger_reservations)';
  const sql = `SELECT COUNT(*) + (${ofOwners}) AS claims FROM ledger_reservations WHERE key_id = `;
  const row =
    database.kind === 'sqlite'
      ? database.connection.prepare(`${sql}?`).get(keyId)
      : (await database.query(`${sql}$1`, [keyId]))[0];
  return Number(row?.['claims']);
}
