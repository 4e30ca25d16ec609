/** Whom a call belongs to is written once for all calls of the same owners. */
import type { UsageRecord } from '../../model/usage-record.ts';
import { idOf, type Kinds } from './kinds.ts';
import { text } from './values.ts';

/** Maximum number of combinations that a process remembers as written. Others are written again, which changes nothing. */
const mostKnown = 50_000;

/** The team, the member and the organisation of a call. */
export interface Owners {
  /** Made from the values, so that nobody has to ask for it. */
  readonly id: number;
  readonly values: readonly (string | null)[];
  readonly isThere: boolean;
}

/** Returns the owners of a record; undefined when it has none. */
export function ownersOf({ team, member, organisation }: UsageRecord, kinds: Kinds): Owners | undefined {
  if (team === undefined && member === undefined && organisation === undefined) return undefined;
  kinds.turnDay();
  if (kinds.owners.size >= mostKnown) kinds.owners.clear();
  const values = [text(team), text(member), text(organisation)];
  const id = idOf(values.map((value) => value ?? '').join('\0'));
  return { id, values, isThere: kinds.owners.has(id) };
}

/** Returns those that may not be in the database yet, each once and in one order, so that no two transactions wait for each other. */
export function unwrittenOwners(owners: readonly (Owners | undefined)[]): readonly Owners[] {
  const found = new Map<number, Owners>();
  for (const one of owners) if (one !== undefined && !one.isThere) found.set(one.id, one);
  return [...found.values()].toSorted((one, other) => one.id - other.id);
}

const seen =
  'ON CONFLICT (id) DO UPDATE SET last_day = excluded.last_day WHERE usage_owners.last_day < excluded.last_day';

/** Writes one combination; changes nothing when it is there. Values: id, team, member, organisation, the day. */
export const ownersInsertion = `INSERT INTO usage_owners (id, team, member, organisation, last_day) VALUES (?, ?, ?, ?, ?) ${seen}`;

/** The same for rows as JSON; gives the ids of those that were not there. */
export const ownersRowsInsertion = `INSERT INTO usage_owners SELECT * FROM json_populate_recordset(NULL::usage_owners, $1::json) ${seen} RETURNING id`;
