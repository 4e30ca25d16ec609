/** Fills a database with the organisations, teams and members that keys belong to. */
import { padded, series, type Age, type Statements } from './statements.ts';

/** Number of organisations. */
const organisations = 4;

/** SQL for the id of an owner with a number. */
export function ownerId(isSqlite: boolean, prefix: 'org' | 'team' | 'mem' | 'key', number: string): string {
  return `'${prefix}_' || ${padded(isSqlite, number, 16)}`;
}

/** Ids of owners that exist in a database of this age. */
export const teamId = (index: number): string => `team_${String(index).padStart(16, '0')}`;
export const memberId = (index: number): string => `mem_${String(index).padStart(16, '0')}`;
export const organisationId = (index: number): string => `org_${String(index).padStart(16, '0')}`;

/** Writes the owners, as the admin API would, and what records name of them. */
export async function fillOwners(
  statements: Statements,
  isSqlite: boolean,
  { members, teams }: Age,
  now: number,
): Promise<void> {
  const organisationOf = (team: string): string => ownerId(isSqlite, 'org', `${team} % ${organisations}`);
  const add = (prefix: 'org' | 'team' | 'mem', kind: string, count: number, organisation: string) =>
    statements.run(
      `INSERT INTO keyv (namespace, key, value) SELECT 'owners', ${ownerId(isSqlite, prefix, 'n')},
         '{"value":{"id":"' || ${ownerId(isSqlite, prefix, 'n')} || '","kind":"${kind}","name":"${kind} ' || n || '"' || ${organisation}
           || ',"enabled":true,"createdAt":' || (${now} - n) || '}}'
       FROM ${series(isSqlite, 0, count - 1)} AS numbers`,
    );
  await add('org', 'organisation', organisations, `''`);
  await add('team', 'team', teams, `',"organisation":"' || ${organisationOf('n')} || '"'`);
  await add('mem', 'member', members, `',"organisation":"' || ${organisationOf(`n % ${teams}`)} || '"'`);
  await statements.run(
    `INSERT INTO usage_owners (id, team, member, organisation, last_day)
     SELECT n + 1, ${ownerId(isSqlite, 'team', `n % ${teams}`)}, ${ownerId(isSqlite, 'mem', 'n')}, ${organisationOf(`n % ${teams}`)}, ${Math.floor(now / 86_400_000)}
     FROM ${series(isSqlite, 0, members - 1)} AS numbers`,
  );
}
