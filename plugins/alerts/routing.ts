/** Chooses the destinations of an alert. */
import { severities, type Item } from './alert.ts';
import type { Route } from './options.ts';

/** Returns the destinations of an alert: those of every route that it fits, each once; all of them where there are no routes. */
export function destinationsOf(
  item: Pick<Item, 'kind' | 'severity' | 'teams'>,
  routes: readonly Route[] | undefined,
  all: readonly string[],
): readonly string[] {
  if (routes === undefined) return all;
  return [...new Set(routes.filter((route) => fits(item, route)).flatMap(({ to }) => to))];
}

function fits(item: Pick<Item, 'kind' | 'severity' | 'teams'>, { kinds, severity, teams }: Route): boolean {
  return (
    (kinds === undefined || kinds.includes(item.kind)) &&
    (severity === undefined || severities.indexOf(item.severity) >= severities.indexOf(severity)) &&
    (teams === undefined || teams.some((team) => item.teams?.includes(team) === true))
  );
}
