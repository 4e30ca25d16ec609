import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { ApiKeys } from '../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { type ApiKey } from '../../core/sdk/api-key.ts';
import type { Budget, HeldBudget } from '../../core/sdk/budget.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { makeCall, type Seen } from './callers.ts';
import { startGateways, type RacingGateway } from './gateways.ts';
import { startProvider, type Fate, type RacingProvider } from './provider.ts';

/** How a race is run. */
export interface RaceOptions {
  readonly gateways: number;
  /** Calls at the same time through each gateway. */
  readonly calls: number;
  /** Another database than an SQLite file of the race's own. */
  readonly database?: string;
  /** Redis that the gateways share. Default: none. */
  readonly redis?: SharedStoreSettings;
  readonly say?: (line: string) => void;
}

/** What must be zero. */
export interface Outcome {
  /**
   * Micro-dollars spent or reserved beyond the budget, at the end or at any time in between that was looked at; without those that a
   * provider gave beyond the limit that it was asked to keep.
   */
  readonly overshoot: number;
  /** Claims that nobody has settled or swept. */
  readonly unsettled: number;
  /** Calls without a record, and micro-dollars by which what is spent differs from the sum of the records. */
  readonly unrecorded: number;
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
  say = () => {},
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
    const [first, second, third] = [await key('first'), await key('second'), await key('third')];
    const team = await teamOf(keys, budget);
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
      const outcome = await runHeat({ stores, gateways, provider, calls, budget, ...more });
      say(`${title}: ${outcome.line}, ${((performance.now() - began) / 1000).toFixed(1)} s`);
      return outcome;
    };
    const outcomes = [
      await heat(`${total} calls, ${count} gateways`, { keys: [first] }),
      await heat(`${total} calls, a provider that ignores limits`, { keys: [second], ignoring: true }),
      await heat(`${total} calls of ${team.keys.length} keys of one team`, team),
      await heat(`${total} calls, one of ${count} gateways killed`, { keys: [third], killed: gateways[0] }),
    ];
    const sum = (name: keyof Outcome): number => outcomes.reduce((all, outcome) => all + outcome[name], 0);
    const result = {
      overshoot: sum('overshoot'),
      unsettled: sum('unsettled'),
      unrecorded: sum('unrecorded'),
    };
    if (Object.values(result).some((number) => number > 0))
      for (const { output } of gateways) say(output.join(''));
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
}

/**
 * Keys of one team, whose budget they fight for; a budget of each key and one of the organisation are a little larger than what each is likely
 * to get of it.
 */
async function teamOf(keys: ApiKeys, budget: Budget): Promise<Pick<Heat, 'keys' | 'budget'>> {
  const larger = (factor: number) => ({ ...budget, amount: Math.round(budget.amount * factor) });
  const { owners } = keys;
  const { id: organisation } = await owners.create({
    kind: 'organisation',
    name: 'o',
    budgets: [larger(1.2)],
  });
  const { id } = await owners.create({ kind: 'team', name: 't', organisation, budgets: [budget] });
  const names = ['one', 'two', 'three', 'four'];
  return {
    keys: await Promise.all(
      names.map((name) => keys.create({ name, team: id, budgets: [larger(1.3 / names.length)] })),
    ),
    budget: { ...budget, owner: { id, name: 'the team "t"' } },
  };
}

interface Heat {
  readonly stores: Stores;
  readonly gateways: readonly RacingGateway[];
  readonly calls: number;
  readonly provider: RacingProvider;
  /** Calls are made with one after the other. */
  readonly keys: readonly RacingKey[];
  /** The one that is fought for. */
  readonly budget: HeldBudget;
  /** The gateway that is killed. */
  readonly killed?: RacingGateway | undefined;
  /** Some calls are given more than they ask for. */
  readonly ignoring?: boolean;
}

async function runHeat({
  stores,
  gateways,
  provider,
  calls,
  keys,
  budget,
  killed,
  ignoring = false,
}: Heat): Promise<Outcome & { readonly line: string }> {
  const ledger = openLedger(stores);
  const usageLog = openUsageLog(stores);
  const standing = async () => {
    const [state] = await ledger.states(keys[0]?.record.id ?? '', [budget]);
    if (state === undefined) throw new Error('The budget has no state.');
    return state;
  };
  let overshoot = 0;
  let mostAhead = 0;
  const before = provider.beyond;
  const look = async () => {
    const state = await standing();
    overshoot = Math.max(overshoot, state.spent + state.reserved + state.ahead - budget.amount);
    mostAhead = Math.max(mostAhead, state.ahead);
    return state;
  };
  const heat = { over: false, called: false };
  const looking = (async () => {
    for (; !heat.over; await setTimeout(25)) await look();
  })();

  const seen: (Seen & { readonly gateway: RacingGateway })[] = [];
  /** Who is refused asks again when other calls have ended, so that the budget is fought for to its end. */
  const persist = async (gateway: RacingGateway, number: number): Promise<void> => {
    const { stream, fate } = shapeOf(number, killed !== undefined, ignoring);
    for (let tries = 0; tries < 4; tries += 1) {
      const { value } = keys[number % keys.length] ?? { value: '' };
      const one = await makeCall(gateway.url, value, { number, stream, fate }, provider);
      seen.push({ ...one, gateway });
      if (one.status !== 429) return;
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
  const recorded = async (): Promise<ReadonlyMap<string, number>> => {
    const found = new Map<string, number>();
    for (const { record: key } of keys)
      for await (const record of usageLog.each({ keyId: key.id }))
        found.set(record.id, record.microDollars ?? 0);
    return found;
  };
  const missing = (records: ReadonlyMap<string, number>): number =>
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
  const { spent } = await look();
  const sum = [...records.values()].reduce((all, cost) => all + cost, 0);
  const unsettled = await claims();
  const answered = seen.filter(({ status }) => status === 200).length;
  const refused = seen.filter(({ status }) => status === 429).length;
  const beyond = (provider.beyond - before) * price.output;
  const delivered = seen.filter(
    ({ gateway, deliveredAt }) => gateway === killed && deliveredAt !== undefined,
  );
  const lost = delivered.filter(({ status, id }) => status === 200 && !records.has(id ?? ''));
  const oldest = Math.max(0, ...lost.map(({ deliveredAt = killedAt }) => killedAt - deliveredAt));
  const losses = `; it had delivered ${delivered.length}, of which ${lost.length} were lost, the oldest ${Math.ceil(oldest)} ms before`;
  const shares = gateways.map(
    (one) => seen.filter(({ gateway, status }) => gateway === one && status === 200).length,
  );
  const fairness = `, answered by each ${shares.join(', ')}, reserved ahead ${mostAhead} at the most`;
  const told = ignoring ? `, overshoot ${Math.max(0, overshoot)}, beyond the limit asked ${beyond}` : '';
  return {
    overshoot: Math.max(0, overshoot - beyond),
    unsettled,
    unrecorded: Math.max(0, missing(records)) + Math.abs(sum - spent),
    line: `${answered} answered, ${refused} refused, ${seen.length - answered - refused} otherwise; budget ${budget.amount}, spent ${spent}, records ${records.size} of ${sum}${fairness}${told}${killed === undefined ? '' : losses}`,
  };
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

/** What becomes of calls: of streams, and of whole answers. */
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
