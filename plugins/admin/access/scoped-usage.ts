/** The usage log as an actor may see it. */
import { GatewayError } from 'sluice';
import type { InternalTools, UsageFilter } from 'sluice/internal';
import type { Handlers } from '../serve.ts';
import type { RouteName } from '../routes.ts';
import type { Scope } from './scope.ts';

type UsageLog = InternalTools['usageLog'];
type UsageTools = Pick<InternalTools, 'usageLog' | 'apiKeys' | 'rates' | 'bookkeeper' | 'catalog' | 'upkeep'>;

/**
 * Returns the tools for the routes about usage as they are for a scope: every question to the usage log is narrowed to it, whatever the
 * handler asks, and nothing is told of the health of the gateway.
 */
export function usageToolsIn<Tools extends UsageTools>(tools: Tools, scope: Scope): Tools {
  if (scope.keys === undefined) return tools;
  return {
    ...tools,
    usageLog: narrowed(tools.usageLog, scope),
    rates: { state: 'ok' },
    bookkeeper: { waiting: 0 },
    catalog: { channels: [], isOn: () => true },
    upkeep: { warned: [] },
  };
}

/** Returns handlers that are made anew for the scope of each request. */
export function inScope<Name extends RouteName>(
  names: readonly Name[],
  make: (scope: Scope) => Handlers<Name>,
): Handlers<Name> {
  const handlers = names.map((name) => {
    const handler = (asked: Parameters<Handlers<Name>[Name]>[0]): unknown => make(asked.scope)[name](asked);
    return [name, handler] as const;
  });
  return Object.fromEntries(handlers) as unknown as Handlers<Name>;
}

function narrowed(log: UsageLog, scope: Scope): UsageLog {
  const narrow = (filter: UsageFilter): UsageFilter => narrowFilter(filter, scope);
  return {
    ...log,
    page: (filter, limit, after) => log.page(narrow(filter), limit, after),
    largest: (filter, by, limit) => log.largest(narrow(filter), by, limit),
    sums: (filter, grouping, options) => log.sums(narrow(filter), grouping, options),
    each: (filter) => log.each(narrow(filter)),
    failedAttempts: async () => new Map(),
    async find(id) {
      const record = await log.find(id);
      if (record !== undefined) narrow({});
      return record;
    },
  };
}

/** Throws 403: the log does not know yet whose each call was. */
function narrowFilter(_filter: UsageFilter, _scope: Scope): UsageFilter {
  throw new GatewayError(
    'forbidden',
    'Usage is shown to administrators and auditors of the whole gateway alone.',
  );
}
