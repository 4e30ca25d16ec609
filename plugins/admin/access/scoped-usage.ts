/** The usage log as an actor may see it. */
import { GatewayError } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { UsageFilter } from '../core-types.ts';
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
    const handler = (request: Parameters<Handlers<Name>[Name]>[0]): unknown =>
      make(request.scope)[name](request);
    return [name, handler] as const;
  });
  return Object.fromEntries(handlers) as unknown as Handlers<Name>;
}

function narrowed(log: UsageLog, scope: Scope): UsageLog {
  const narrow = (filter: UsageFilter): UsageFilter => narrowFilter(filter, scope);
  return {
    ...log,
    page: (filter, limit, after) => log.page(narrow(filter), limit, after),
    largest: (filter, by, limit, after) => log.largest(narrow(filter), by, limit, after),
    sums: (filter, grouping, options) => log.sums(narrow(filter), grouping, options),
    sumsInJson: (filter, grouping, { before, ...options } = {}) =>
      log.sumsInJson(narrow(filter), grouping, {
        ...options,
        ...(before === undefined ? {} : { before: narrow(before) }),
      }),
    each: (filter) => log.each(narrow(filter)),
    failedAttempts: async () => new Map(),
    async find(id) {
      const record = await log.find(id);
      if (record !== undefined) scope.checkUsage(record);
      return record;
    },
  };
}

/**
 * Narrows a filter to a scope. A member sees its own usage; that of a team that it leads where the filter names the team. Throws 404 for
 * owners of others.
 */
function narrowFilter(filter: UsageFilter, { keys }: Scope): UsageFilter {
  if (keys === undefined) return filter;
  const { organisation, member = 'nobody', teams = [] } = keys;
  if (organisation !== undefined) {
    checkOwn(filter.organisation, organisation);
    return { ...filter, organisation };
  }
  if (filter.team !== undefined && teams.includes(filter.team)) return filter;
  checkOwn(filter.member, member);
  return { ...filter, member };
}

function checkOwn(requested: string | undefined, own: string): void {
  if (requested !== undefined && requested !== own)
    throw new GatewayError(
      'not_found',
      `There is no usage of ${requested.slice(0, 100)} that you have access to.`,
    );
}
