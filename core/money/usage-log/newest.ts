/** Lists records by time, the newest first. */
import type { UsageRecord } from '../../model/usage-record.ts';
import { yieldToEventLoop } from '../../state/database/yield-to-event-loop.ts';
import { isOfSubject, type Candidates } from './candidate-entries.ts';
import { fewest, offerFor, ofKey } from './candidates.ts';
import type { UsageFilter } from './index.ts';
import { hasMany, isOwned, joinedHours, knowsHours, matchingHours, type Stretch } from './matching-hours.ts';
import { listSlice, rangeOf, type Cursor } from './questions.ts';
import type { Reading } from './reading.ts';
import { isOver, pageFor, readFew, readSlices, type Page } from './slices.ts';
import { subjectHasMany } from './subject-hours.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** The newest records of a filter; `unread`: the time before which nothing was read, where the page has read as much as it may. */
export interface Newest {
  readonly found: readonly UsageRecord[];
  readonly unread?: number;
}

/** Finds the newest records of a filter before a place, up to a limit. */
export type FindNewest = (filter: UsageFilter, limit: number, before: Cursor | undefined) => Promise<Newest>;

/** Returns the function that finds the newest records. */
export function createNewest(reading: Reading): FindNewest {
  const { kind, indexes } = reading;
  return async (filter, limit, before) => {
    const { start, end } = rangeOf(filter);
    const page = pageFor(reading, filter, limit, before);
    const { query, found } = page;
    // A cursor without an id is before all records of its millisecond.
    const until = before === undefined ? end : Math.min(end, before.id === '' ? before.at : before.at + 1);
    const whole = { since: start, until };
    const { id, since: _since, until: _until, ...narrow } = filter;
    // The unique index of ids finds one record, however far back it is.
    if (id !== undefined) return { found: await read(page, start, until) };
    const { keyId, ...others } = narrow;
    if (Object.values(narrow).every((value) => value === undefined)) return all(page, start, until);
    // An index has those of a key in the order of time.
    if (
      kind === 'postgres' &&
      keyId !== undefined &&
      Object.values(others).every((value) => value === undefined)
    )
      return newestOf(page, await readSlices(page, ofKey(keyId), whole));
    const offer = await offerFor(query, kind, indexes, filter);
    // The sums know in which hours a key has such calls, and whether there are any.
    const hasHours = await knowsHours(query, filter);
    const isRare = !hasHours || (keyId === undefined && !(await hasMany(query, filter, until)));
    const rare = offer.filter(({ by }) => !hasHours || by === 'measure' || (by === 'names' && isRare));
    for (const one of hasHours ? offer : [])
      if (one.by === 'subject' && one.subject !== undefined)
        if (!(await subjectHasMany(query, filter, one.subject, start, until))) rare.push(one);
    if (await readIfFew(page, rare, whole)) return { found };
    // The sums do not know all tags and end users.
    const unknown = rare.filter(({ by }) => by === 'subject');
    if (!hasHours || unknown.length > 0)
      return newestOf(page, await walk(page, hasHours ? unknown : offer, whole));
    const hours = matchingHours(query, filter, start, until);
    const isOfIndex = offer.some((one) => isOfSubject(one) || !isOwned(filter)) && !isMeasured(filter);
    for await (const { runs, calls, ...stretch } of joinedHours(hours, isOfIndex ? limit : undefined)) {
      const inTime = [stretch, ...runs].map((one) => ({
        since: Math.max(start, one.since),
        until: Math.min(until, one.until),
      }));
      const [joined = whole, ...single] = inTime;
      // Of what is frequent too many entries would be counted in vain.
      const few = calls <= listSlice ? offer : offer.filter((one) => !isOfSubject(one));
      const unread = await readStretch(page, few, joined, single);
      if (unread !== undefined) return { found, unread };
      if (found.length >= limit) break;
    }
    return { found };
  };
}

/** True for a filter by duration or cost, which no sums know. */
function isMeasured({ minMs, maxMs, minMicroDollars, maxMicroDollars }: UsageFilter): boolean {
  return [minMs, maxMs, minMicroDollars, maxMicroDollars].some((bound) => bound !== undefined);
}

function newestOf({ found }: Page, unread: number | undefined): Newest {
  return unread === undefined ? { found } : { found, unread };
}

/** Reads what a page still needs of a stretch of time, however much that is; returns all that the page has. */
async function read(
  { select, filter, limit, before, found }: Page,
  since: number,
  until: number,
): Promise<readonly UsageRecord[]> {
  if (since >= until) return found;
  const only = before && { sql: '(at, id) < (?, ?)', values: [before.at, before.id] };
  found.push(
    ...(await select({
      filter: { ...filter, since, until },
      limit: limit - found.length,
      ...(only && { only }),
    })),
  );
  return found;
}

/** Reads the newest records of all. */
async function all(page: Page, start: number, end: number): Promise<Newest> {
  // To plan for the partitions of an hour or a day takes a server less than for all of them.
  const latest = Math.min(end, Date.now());
  const steps = page.kind === 'postgres' ? [latest - hour, latest - day, start] : [start];
  let until = end;
  for (const step of steps) {
    const since = Math.max(start, Math.min(step, until));
    await read(page, since, until);
    if (page.found.length >= page.limit) break;
    until = since;
  }
  return { found: page.found };
}

/** Reads a stretch of time by the index that has few entries for it, if any has. */
async function readIfFew(page: Page, offer: readonly Candidates[], stretch: Stretch): Promise<boolean> {
  const [first] = offer;
  if (first === undefined) return false;
  if (offer.length === 1) return readFew(page, first, stretch);
  const { few, looks } = await fewest(page.query, offer, stretch.since, stretch.until);
  page.left -= looks;
  return few !== undefined && readFew(page, few, stretch);
}

/** Reads hours that have records of a filter: together if they are few, or else those that follow each other. Returns where it ended early. */
async function readStretch(
  page: Page,
  offer: readonly Candidates[],
  joined: Stretch,
  runs: readonly Stretch[],
): Promise<number | undefined> {
  if (isOver(page)) return joined.until;
  const [first] = offer;
  const isInOrder = offer.length === 1 && first?.isOrdered === true;
  const length = joined.until - joined.since;
  if ((runs.length > 1 || !isInOrder) && length < page.many) {
    if (await readIfFew(page, offer, joined)) return undefined;
    page.many = length;
  }
  for (const run of runs) {
    const unread =
      runs.length > 1
        ? await readStretch(page, offer, run, [run])
        : await readSlices(page, inOrder(offer), run);
    if (unread !== undefined) return unread;
    if (page.found.length >= page.limit) break;
    await yieldToEventLoop();
  }
  return undefined;
}

/** Reads a long time of which nothing is known: by an index as long as it has few entries for a time, or else all records. */
async function walk(
  page: Page,
  offer: readonly Candidates[],
  { since, until }: Stretch,
): Promise<number | undefined> {
  let end = until;
  // Other indexes of SQLite that are in another order have all times together.
  const unordered = offer.filter(
    ({ isOrdered, by }) => !isOrdered && (page.kind === 'postgres' || by === 'subject'),
  );
  for (let width = day; unordered.length > 0 && end > since;) {
    if (page.found.length >= page.limit) return undefined;
    if (isOver(page)) return end;
    const latest = Math.min(end - 1, Date.now());
    const from = Math.max(since, Math.floor(latest / day) * day + day - width);
    const left = page.left;
    if (!(await readIfFew(page, unordered, { since: from, until: end }))) {
      if (width === day) break;
      width = day;
      continue;
    }
    if (left - page.left < listSlice / 2) width *= 2;
    end = from;
    await yieldToEventLoop();
  }
  return readSlices(page, inOrder(offer), { since, until: end });
}

/** The index of an offer that is in the order of time: failures are fewer than the calls of a key that has many. */
function inOrder(offer: readonly Candidates[]): Candidates | undefined {
  return offer.findLast(({ isOrdered }) => isOrdered);
}
