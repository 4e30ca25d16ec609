/** State of the gateway, as plugins read it. */
import cluster from 'node:cluster';
import { hostname } from 'node:os';
import { lostLogLines } from '../log/output.ts';
import type {
  Operations,
  OperationsStatus,
  ProcessFigures,
  TargetStanding,
} from '../sdk/author/operations.ts';
import type { Bookkeeper, Ledger } from '../money/ledger/index.ts';
import type { Rates } from '../money/rates/index.ts';
import type { Health } from '../sdk/health.ts';
import type { ApiKey } from '../sdk/api-key.ts';
import type { ApiKeys } from '../state/api-keys/index.ts';
import type { Owners } from '../state/owners/index.ts';
import type { Processes } from '../state/links/processes.ts';
import type { Stores } from '../state/stores.ts';
import type { Upkeep } from '../state/upkeep.ts';

/** Parts of a gateway that know how it stands. */
interface Parts {
  readonly apiKeys: Pick<ApiKeys, 'page' | 'owners' | 'held'>;
  readonly bookkeeper: Pick<Bookkeeper, 'waiting'>;
  readonly health: Pick<Health, 'report' | 'sharing'>;
  readonly ledger: Pick<Ledger, 'states'>;
  readonly processes: Pick<Processes, 'status' | 'worker'>;
  readonly rates: Pick<Rates, 'state'>;
  readonly stores: Pick<Stores, 'health' | 'database'>;
  readonly upkeep: Pick<Upkeep, 'all'>;
}

/** Opens a view of the parts, which are read when somebody asks. */
export function openOperations(parts: Parts): Operations {
  const { apiKeys, ledger } = parts;
  return {
    gateway: `${hostname()}:${cluster.isWorker ? process.ppid : process.pid}`,
    status: () => statusOf(parts),
    figures: () => figuresOf(parts),
    budgets: ({ id, budgets }) => (budgets === undefined ? Promise.resolve([]) : ledger.states(id, budgets)),
    keys: async (limit, after) => {
      const page = await apiKeys.page(limit, after);
      return { ...page, keys: page.keys.map((key) => withTeam(key, apiKeys.owners)) };
    },
  };
}

/** Returns the key with its team among its owners, so that whoever lists keys can name the team. */
function withTeam(key: ApiKey, owners: Pick<Owners, 'find'>): ApiKey {
  const team = key.team === undefined ? undefined : owners.find(key.team);
  return team === undefined ? key : { ...key, owners: [team] };
}

async function statusOf({ health, processes, rates, stores, upkeep }: Parts): Promise<OperationsStatus> {
  const [database, { lastReload, lastCrashAt, workers }] = await Promise.all([
    stores.health().then(
      () => 'up' as const,
      () => 'down' as const,
    ),
    processes.status(),
  ]);
  const serving = workers.filter(({ state }) => state === 'serving').map(({ worker }) => worker);
  return {
    database,
    sharedStore: sharedStoreOf(rates, health),
    targets: targetsOf(health),
    upkeep: upkeep
      .all()
      .map(({ what, warning }) => ({ what, ...(warning === undefined ? {} : { warning }) })),
    ...(lastReload === undefined
      ? {}
      : { lastReload: { ok: lastReload.ok, problems: lastReload.problems, at: lastReload.at } }),
    ...(lastCrashAt === undefined ? {} : { lastCrashAt }),
    isFirst: processes.worker === Math.min(...serving),
  };
}

function figuresOf({ apiKeys, bookkeeper, health, rates, stores, upkeep }: Parts): ProcessFigures {
  const { database } = stores;
  return {
    unsettledCalls: bookkeeper.waiting,
    heldApiKeys: apiKeys.held.keys,
    lostLogLines: lostLogLines(),
    sharedStore: sharedStoreOf(rates, health),
    connections: database.kind === 'postgres' ? database.connections() : [],
    get targets() {
      return targetsOf(health);
    },
    get upkeep() {
      return upkeep.all();
    },
  };
}

function sharedStoreOf({ state }: Parts['rates'], { sharing }: Parts['health']): 'up' | 'down' {
  return state === 'ok' && sharing !== 'degraded' ? 'up' : 'down';
}

function targetsOf(health: Parts['health']): readonly TargetStanding[] {
  return health.report().map(({ channel, key, model, standing, last }) => ({
    channel,
    key,
    ...(model === undefined ? {} : { model }),
    state: standing,
    ...(last === undefined ? {} : { code: last.code }),
  }));
}
