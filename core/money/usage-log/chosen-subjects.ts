/** Limits how many tags and end users of an hour have sums, each tenant by itself, because clients choose their names. */
import type { Database } from '../../state/database/index.ts';
import { rows, type Work } from '../../state/database/sql.ts';
import { hour, minute } from './levels.ts';
import type { Subject } from './subjects-of-call.ts';
import {
  newSubjectLevels,
  subjectKinds,
  subjectLevel,
  type ChosenKind,
  type SubjectKind,
  type SubjectLimits,
} from './subjects.ts';

/** True for a kind of subjects whose names clients choose. */
export function isChosen(kind: SubjectKind): kind is ChosenKind {
  return kind === 'tag' || kind === 'endUser';
}

/** A tag or end user that has a call in an hour. */
interface Named {
  readonly kind: ChosenKind;
  readonly subject: string;
  readonly at: number;
}

/** Numbers of new subjects of one kind in one hour. */
interface Counts {
  readonly byTenant: Map<string, number>;
  all: number;
}

const newIn = `SELECT s.subject, SUM(t.calls) AS count FROM usage_subject_totals t JOIN usage_subjects s ON s.id = t.subject
  WHERE t.level = ? AND t.start = ? GROUP BY s.subject`;

/** Which of the given names have sums in an hour: a JSON text of an array. */
function knownIn(kind: Database['kind']): string {
  const given =
    kind === 'sqlite' ? 'SELECT value FROM json_each(?)' : 'SELECT json_array_elements_text(?::json)';
  return `SELECT s.subject FROM usage_subjects s WHERE s.kind = ? AND s.subject IN (${given})
    AND EXISTS (SELECT 1 FROM usage_subject_totals t WHERE t.level = ? AND t.start = ? AND t.subject = s.id)`;
}

/** The tags and end users of some records, which are added in one transaction. */
export class ChosenSubjects {
  readonly #known = new Set<string>();
  readonly #counts = new Map<string, Counts>();
  readonly #find: string;
  readonly #limits: SubjectLimits;

  constructor(kind: Database['kind'], limits: SubjectLimits) {
    this.#find = knownIn(kind);
    this.#limits = limits;
  }

  /** Reads which names have sums in their hours, and how many new ones each tenant has there. */
  *read(all: readonly Named[]): Work<void> {
    const groups = new Map<string, { readonly one: Named; readonly subjects: Set<string> }>();
    for (const one of all) {
      const prefix = prefixOf(one.kind, one.at);
      const found = groups.get(prefix);
      if (found === undefined) groups.set(prefix, { one, subjects: new Set([one.subject]) });
      else found.subjects.add(one.subject);
    }
    for (const [prefix, { one, subjects }] of groups) {
      const start = startOf(one.at);
      const level = subjectLevel(one.kind, false, hour) ?? 0;
      const names = JSON.stringify([...subjects]);
      for (const { subject } of yield* rows(this.#find, subjectKinds[one.kind], names, level, start))
        this.#known.add(`${prefix} ${String(subject)}`);
      const byTenant = new Map<string, number>();
      for (const { subject, count } of yield* rows(newIn, newSubjectLevels[one.kind].level, start))
        byTenant.set(String(subject), Number(count));
      this.#counts.set(prefix, {
        byTenant,
        all: [...byTenant.values()].reduce((sum, count) => sum + count, 0),
      });
    }
  }

  /** True for a subject that has sums of its own in the hour of a time. */
  has({ kind, values }: Subject, at: number): boolean {
    return !isChosen(kind) || this.#known.has(`${prefixOf(kind, at)} ${String(values[1])}`);
  }

  /** Returns undefined for a subject that is one too many; true for a new one, which has to be counted for its tenant. */
  take(kind: ChosenKind, subject: string, at: number, tenant: string): boolean | undefined {
    const prefix = prefixOf(kind, at);
    const name = `${prefix} ${subject}`;
    if (this.#known.has(name)) return false;
    const counts = this.#counts.get(prefix) ?? { byTenant: new Map<string, number>(), all: 0 };
    const own = counts.byTenant.get(tenant) ?? 0;
    const { tenant: most, all, leastOfTenant } = this.#limits;
    if (own >= most || (counts.all >= all && own >= leastOfTenant)) return undefined;
    this.#known.add(name);
    counts.byTenant.set(tenant, own + 1);
    counts.all += 1;
    return true;
  }
}

function prefixOf(kind: ChosenKind, at: number): string {
  return `${kind} ${startOf(at)}`;
}

/** The hour of a time, in minutes as the sums have it. */
function startOf(at: number): number {
  return (at - (at % hour)) / minute;
}
