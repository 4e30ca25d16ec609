/** Finds how a question about owners, tags or end users is answered, and the rows that are to be added up for it. */
import type { Database } from '../../state/database/index.ts';
import { chargedMore } from '../../state/database/tables/usage-charges.ts';
import { addedAmounts as amounts, addedUp, chargeAlone, outcomesOf, uncharged } from './added-up.ts';
import type { UsageFilter, UsageGrouping } from './index.ts';
import { segmentsOf, type Folded, type Segment } from './levels.ts';
import { namedMembers, narrowing, ownedMembers, ownedNarrowing, type Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { subjectKinds, subjectLevel, type SubjectKind } from './subjects.ts';
import { summedOfRecords } from './summing.ts';

/** Columns of records, and of `usage_subjects`, by which questions group. */
const columns = {
  keyId: 'key_id',
  team: 'team',
  member: 'member',
  organisation: 'organisation',
  tag: 'tag',
  endUser: 'end_user',
} as const;
type Grouped = keyof typeof columns;

/** How a question is answered: by sums of a kind of subjects, or by the records where no sums have all that is asked. */
export interface SubjectPlan {
  readonly kind: SubjectKind | 'records';
  readonly needsNames: boolean;
  /** By what it groups, where that is an owner, a tag, an end user or a key. */
  readonly grouped: Grouped | undefined;
}

function isGrouped(grouping: UsageGrouping): grouping is Grouped {
  return typeof grouping === 'string' && Object.hasOwn(columns, grouping);
}

/** Returns how a question is answered; undefined when it is not about owners, tags or end users. */
export function subjectPlan(filter: UsageFilter, grouping: UsageGrouping): SubjectPlan | undefined {
  const given = ownedMembers.filter((name) => filter[name] !== undefined);
  const grouped = isGrouped(grouping) ? grouping : undefined;
  if (given.length === 0 && (grouped === undefined || grouped === 'keyId')) return undefined;
  const needsNames =
    namedMembers.some((name) => filter[name] !== undefined) ||
    (typeof grouping === 'string' && grouped === undefined);
  return { kind: kindFor(filter, given, grouped, needsNames), needsNames, grouped };
}

function kindFor(
  { keyId }: UsageFilter,
  given: readonly SubjectKind[],
  grouped: Grouped | undefined,
  needsNames: boolean,
): SubjectKind | 'records' {
  const wanted = new Set<SubjectKind | 'keyId'>([...given, ...(grouped === undefined ? [] : [grouped])]);
  if (keyId !== undefined) wanted.add('keyId');
  const [only] = wanted;
  if (wanted.size === 1 && only !== undefined && only !== 'keyId')
    return needsNames && only === 'endUser' ? 'records' : only;
  if (wanted.has('tag') || wanted.has('endUser')) return 'records';
  // Teams and members are summed with their organisation.
  const rest = [...wanted].filter((one) => one !== 'organisation');
  const [owner] = rest;
  if (rest.length === 1 && owner !== undefined && owner !== 'keyId' && grouped !== 'organisation')
    return owner;
  return needsNames ? 'records' : 'bearer';
}

/** The stretches of time that are read, and from which level. */
export function subjectSegments(
  { kind, needsNames }: SubjectPlan,
  bucket: number | undefined,
  start: number,
  end: number,
  folded: readonly Folded[],
): readonly Segment[] {
  if (kind === 'records') return [{ level: 'records', since: start, until: end }];
  return segmentsOf((size) => subjectLevel(kind, needsNames, size), bucket, start, end, Date.now(), folded);
}

const names = ['model', 'channel', 'format', 'status', 'failed'] as const;

/** As `sourceOf` for a question about subjects: rows have `grouped` in the place of the key. */
export function subjectSource(
  database: Database['kind'],
  { kind, grouped }: SubjectPlan,
  filter: UsageFilter,
  segments: readonly Segment[],
  bucket: number | undefined,
  groups?: readonly string[],
): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const add = (sql: string, ...more: readonly (string | number)[]): void => {
    parts.push(sql);
    values.push(...more);
  };
  const ofSums = segments.filter(({ level }) => level !== 'records');
  const ofOneCall = `, ${outcomesOf('1')}`;
  if (ofSums.length > 0 && kind !== 'records') {
    const sums = totalsOf(database, kind, grouped, filter, ofSums, bucket, groups !== undefined);
    add(sums.sql, ...sums.values);
  }
  const addWaiting = (table: string, counted: string, since: number, until: number): void => {
    const source = `(SELECT u.*, o.team, o.member, o.organisation FROM ${table} u LEFT JOIN usage_owners o ON o.id = u.owners) AS waiting`;
    const narrowed = narrowing(filter);
    const owned = ownedNarrowing(filter);
    const [column, from] = rowColumn(database, grouped);
    add(
      `SELECT at, ${column} AS grouped, ${names.join(', ')}, ${counted} FROM ${source}${from}
       WHERE at >= ? AND at < ?${narrowed.sql}${owned.sql}${isGiven(column, ' AND')}`,
      since,
      until,
      ...narrowed.values,
      ...owned.values,
    );
  };
  const [first, last] = [ofSums[0], ofSums.at(-1)];
  if (first !== undefined && last !== undefined) {
    addWaiting('usage_unsummed_owned', `1 AS calls, ${uncharged}${ofOneCall}`, first.since, last.until);
    addWaiting(
      'usage_unsummed_charged',
      `${chargeAlone}, 0 AS failed_calls, 0 AS refused_calls`,
      first.since,
      last.until,
    );
  }
  for (const { level, since, until } of segments) {
    if (level !== 'records') continue;
    const own = conditions({ ...filter, since, until }, undefined, database);
    const [column, from] = rowColumn(database, grouped);
    add(
      `SELECT at, ${column} AS grouped, ${names.join(', ')}, 1 AS calls, ${amounts.join(', ')}${ofOneCall} FROM
       (SELECT ${summedOfRecords}, COALESCE(${chargedMore[database]('')}, 0) AS charged_more, team, member, organisation, tags, end_user FROM usage_calls ${own.where}) AS records${from}
       ${isGiven(column, 'WHERE')}`,
      ...own.values,
    );
  }
  const sql = parts.join(' UNION ALL ');
  if (groups === undefined) return { sql, values };
  const among = groups.map(() => '?').join();
  const of =
    kind === 'records'
      ? ''
      : ` WHERE s.kind = ${subjectKinds[kind]} AND ${subjectColumn(kind, grouped)} IN (${among})`;
  return {
    sql: `WITH chosen AS MATERIALIZED (SELECT s.id FROM usage_subjects s${of})
      SELECT * FROM (${sql}) AS of_all WHERE grouped IN (${among})`,
    values: [...(of === '' ? [] : groups), ...values, ...groups],
  };
}

/** Sums as `usage_subject_totals` has them. */
function totalsOf(
  database: Database['kind'],
  kind: SubjectKind,
  grouped: Grouped | undefined,
  filter: UsageFilter,
  segments: readonly Segment[],
  bucket: number | undefined,
  isSome: boolean,
): Source {
  const { keyId: _keyId, ...others } = filter;
  const byId = grouped !== undefined;
  const column = subjectColumn(kind, grouped);
  const sums = addedUp(database, {
    table: 'usage_subject_totals',
    segments,
    ofTable: subjectConditions(kind, filter),
    ofNames: narrowing(others, 'n.'),
    bucket,
    byId,
    ...(isSome ? { among: { sql: 'SELECT id FROM chosen', values: [] } } : {}),
  });
  const ofAmounts = amounts.map((name) => `COALESCE(g.${name}, 0) AS ${name}`).join(', ');
  if (byId) {
    return {
      sql: `SELECT g.at, ${column} AS grouped, '' AS model, '' AS channel, '' AS format, 0 AS status, 0 AS failed, g.calls, ${ofAmounts},
          g.failed_calls, g.refused_calls
        FROM (${sums.sql}) AS g JOIN usage_subjects s ON s.id = g.subject ${isGiven(column, 'WHERE')}`,
      values: sums.values,
    };
  }
  return {
    sql: `SELECT at, grouped, ${names.join(', ')}, calls, ${amounts.join(', ')}, ${outcomesOf('calls')} FROM (
        SELECT g.at, '' AS grouped, ${names.map((name) => `n.${name}`).join(', ')}, g.calls, ${ofAmounts}
        FROM (${sums.sql}) AS g JOIN usage_names n ON n.id = g.names) AS named`,
    values: sums.values,
  };
}

/** SQL that leaves out calls that are in no group. */
function isGiven(column: string, word: string): string {
  return column === "''" ? '' : `${word} ${column} IS NOT NULL`;
}

/** By which column of `usage_subjects` sums are grouped. */
function subjectColumn(kind: SubjectKind | 'records', grouped: Grouped | undefined): string {
  if (grouped === undefined) return "''";
  return grouped === 'tag' || grouped === 'endUser' || (kind === 'organisation' && grouped === 'organisation')
    ? 's.subject'
    : `s.${columns[grouped]}`;
}

/** By what rows of records are grouped, and what that needs beside them. */
function rowColumn(
  database: Database['kind'],
  grouped: Grouped | undefined,
): readonly [column: string, from: string] {
  if (grouped === undefined) return ["''", ''];
  if (grouped !== 'tag') return [columns[grouped], ''];
  return database === 'sqlite'
    ? ['tag.value', ' CROSS JOIN json_each(tags) AS tag']
    : ['tag.value', ' CROSS JOIN LATERAL json_array_elements_text(tags::json) AS tag (value)'];
}

/** Which subjects of a kind fit a filter. */
function subjectConditions(kind: SubjectKind, filter: UsageFilter): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const need = (column: string, value: string | undefined): void => {
    if (value === undefined) return;
    parts.push(` AND ${column} = ?`);
    values.push(value);
  };
  if (kind === 'tag' || kind === 'endUser' || kind === 'organisation') need('subject', filter[kind]);
  else {
    need('team', filter.team);
    need('member', filter.member);
    need('organisation', filter.organisation);
    need('key_id', filter.keyId);
  }
  if (parts.length === 0) return { sql: '', values };
  return {
    sql: ` AND t.subject IN (SELECT id FROM usage_subjects WHERE kind = ${subjectKinds[kind]}${parts.join('')})`,
    values,
  };
}
