import { GatewayError } from '../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { deleteResponse, isItemId, mostText, nowInSeconds, readObject, readObjects } from './tables.ts';
import type { ResponseState, ResponseStore, StoredResponse } from './index.ts';
import { row, rows, type Row, type Sql, type Work } from '../database/sql.ts';
import type { ReportError } from '../stores.ts';

/** The most turns of a chain. */
const LONGEST_CHAIN = 1000;

const COLUMNS = 'owner, id, created, expires, status, previous, channel, runs_until, response, input';

const SAVE = `
  INSERT INTO responses (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (owner, id) DO UPDATE SET
    created = excluded.created, expires = excluded.expires, status = excluded.status, previous = excluded.previous,
    channel = excluded.channel, runs_until = excluded.runs_until, response = excluded.response, input = excluded.input`;

const FIND = `SELECT ${COLUMNS} FROM responses WHERE owner = ? AND id = ? AND expires > ?`;

/** Turns of a chain that are read, and items that are written, with one statement. */
const TOGETHER = 20;

const findSome = (count: number): string =>
  `SELECT ${COLUMNS} FROM responses WHERE owner = ? AND expires > ? AND id IN (${places('?', count)})`;

const insertItems = (count: number): string =>
  `INSERT INTO response_items (owner, response, item) VALUES ${places('(?, ?, ?)', count)} ON CONFLICT DO NOTHING`;

const STATE = 'SELECT status, runs_until FROM responses WHERE owner = ? AND id = ? AND expires > ?';

/**
 * Only ids and sizes: a circle repeats a few bytes until the limit ends it, and what is too large is never read. The owner goes along and
 * what has expired ends the chain behind the join, so that a turn can be found by its whole key alone: where nothing is known of the tables
 * yet, PostgreSQL would look through all turns of the owner for each.
 */
const CHAIN = `
  WITH RECURSIVE chain (owner, id, previous, expires, size, depth) AS (
    SELECT owner, id, previous, expires, octet_length(response) + octet_length(input), 0
    FROM responses WHERE owner = ? AND id = ?
    UNION ALL
    SELECT earlier.owner, earlier.id, earlier.previous, earlier.expires,
      octet_length(earlier.response) + octet_length(earlier.input), chain.depth + 1
    FROM chain JOIN responses AS earlier ON earlier.owner = chain.owner AND earlier.id = chain.previous
    WHERE chain.depth < ? AND chain.expires > ?
  )
  SELECT id, MIN(depth) AS depth, MIN(size) AS size FROM chain WHERE expires > ? GROUP BY id ORDER BY depth DESC`;

const ITEM = `
  SELECT responses.* FROM response_items JOIN responses
    ON responses.owner = response_items.owner AND responses.id = response_items.response
  WHERE response_items.owner = ? AND response_items.item = ? AND responses.expires > ?
  ORDER BY responses.created DESC LIMIT 1`;

function* put(stored: StoredResponse): Work<void> {
  const { owner, id, createdAt, expiresAt, response, input, previous, channel, runsUntil } = stored;
  yield* rows(
    SAVE,
    owner,
    id,
    createdAt,
    expiresAt,
    statusOf(response),
    previous ?? null,
    channel ?? null,
    runsUntil ?? null,
    JSON.stringify(response),
    JSON.stringify(input),
  );
  yield* rows('DELETE FROM response_items WHERE owner = ? AND response = ?', owner, id);
  const items = itemsOf(stored).flatMap((item) => (isItemId(item['id']) ? item['id'] : []));
  for (const some of batches(items))
    yield* rows(insertItems(some.length), ...some.flatMap((item) => [owner, id, item]));
}

function* stateOf(owner: string, id: string, forUpdate = ''): Work<ResponseState | undefined> {
  const found = yield* row(`${STATE}${forUpdate}`, owner, id, nowInSeconds());
  if (found === undefined) return undefined;
  const { status, runs_until: runsUntil } = found;
  return { status: String(status), ...(runsUntil === null ? {} : { runsUntil: Number(runsUntil) }) };
}

function decode(found: Row, report: ReportError): StoredResponse | undefined {
  const { owner, id, created, expires, previous, channel, runs_until: runsUntil } = found;
  const what = `The response ${String(id)}`;
  const response = readObject(found['response'], what, report);
  const input = response === undefined ? undefined : readObjects(found['input'], what, report);
  if (response === undefined || input === undefined) return undefined;
  return {
    id: String(id),
    owner: String(owner),
    createdAt: Number(created),
    expiresAt: Number(expires),
    response,
    input,
    ...(typeof previous === 'string' ? { previous } : {}),
    ...(typeof channel === 'string' ? { channel } : {}),
    ...(runsUntil === null ? {} : { runsUntil: Number(runsUntil) }),
  };
}

/** The part of the store that keeps responses. */
export function createTurns(
  { run, atomically, forUpdate }: Sql,
  report: ReportError,
): Pick<ResponseStore, 'save' | 'saveIf' | 'renew' | 'find' | 'state' | 'remove' | 'chain' | 'item'> {
  return {
    save: (response) => atomically(() => put(response)),

    saveIf: (response, whileStatus) =>
      atomically(function* () {
        const state = yield* stateOf(response.owner, response.id, forUpdate);
        if (state === undefined || !whileStatus.includes(state.status)) return false;
        yield* put(response);
        return true;
      }),

    renew: (owner, id, runsUntil, whileStatus) =>
      atomically(function* () {
        const state = yield* stateOf(owner, id, forUpdate);
        if (state === undefined || !whileStatus.includes(state.status)) return false;
        yield* rows('UPDATE responses SET runs_until = ? WHERE owner = ? AND id = ?', runsUntil, owner, id);
        return true;
      }),

    async find(owner, id) {
      const found = await run(() => row(FIND, owner, id, nowInSeconds()));
      return found === undefined ? undefined : decode(found, report);
    },

    state: (owner, id) => run(() => stateOf(owner, id)),

    async remove(owner, id) {
      const expired = await atomically(() => deleteResponse(owner, id));
      return expired !== undefined && expired > nowInSeconds();
    },

    chain: (owner, id) =>
      run(function* () {
        const now = nowInSeconds();
        const found = yield* rows(CHAIN, owner, id, LONGEST_CHAIN, now, now);
        const bytes = found.reduce((sum, { size }) => sum + Number(size), 0);
        if (found.length > LONGEST_CHAIN || bytes > mostText.history) throw tooLong(id);
        const byId = new Map<string, StoredResponse>();
        const wanted = found.map((one) => String(one['id']));
        for (const some of batches(wanted)) {
          for (const one of yield* rows(findSome(some.length), owner, now, ...some)) {
            const turn = decode(one, report);
            if (turn !== undefined) byId.set(turn.id, turn);
          }
        }
        const turns = wanted.flatMap((one) => byId.get(one) ?? []);
        const before = turns[0]?.previous;
        const isWhole = before === undefined || byId.has(before);
        return turns.length > 0 && turns.length === wanted.length && isWhole ? turns : undefined;
      }),

    async item(owner, id) {
      const found = await run(() => row(ITEM, owner, id, nowInSeconds()));
      const stored = found === undefined ? undefined : decode(found, report);
      return stored === undefined ? undefined : itemsOf(stored).find((item) => item['id'] === id);
    },
  };
}

function tooLong(id: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `The conversation up to response '${id}' is too long to be continued by its id: send its items as input instead.`,
    { param: 'previous_response_id' },
  );
}

function statusOf(response: JsonObject): string {
  const { status } = response;
  return typeof status === 'string' ? status : '';
}

function itemsOf({ response, input }: StoredResponse): readonly JsonObject[] {
  const { output } = response;
  return Array.isArray(output) ? [...input, ...output.filter(isObject)] : input;
}

function batches(ids: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(ids.length / TOGETHER);
  return Array.from({ length: count }, (_, index) => ids.slice(index * TOGETHER, (index + 1) * TOGETHER));
}

function places(one: string, count: number): string {
  return Array.from({ length: count }, () => one).join(', ');
}
