import { GatewayError } from '../errors.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import {
  deleteResponse,
  mostText,
  nowInSeconds,
  readObject,
  readObjects,
  type Row,
  type Tables,
} from './responses-tables.ts';
import type { ResponseState, ResponseStore, StoredResponse } from './responses.ts';
import type { ReportError } from './stores.ts';

/** The most turns of a chain. */
const LONGEST_CHAIN = 1000;

const COLUMNS = 'owner, id, created, expires, status, previous, channel, runs_until, response, input';

const SAVE = `
  INSERT INTO responses (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (owner, id) DO UPDATE SET
    created = excluded.created, expires = excluded.expires, status = excluded.status, previous = excluded.previous,
    channel = excluded.channel, runs_until = excluded.runs_until, response = excluded.response, input = excluded.input`;

const FIND = `SELECT ${COLUMNS} FROM responses WHERE owner = ? AND id = ? AND expires > ?`;

const STATE = 'SELECT status, runs_until FROM responses WHERE owner = ? AND id = ? AND expires > ?';

/** Only ids and sizes: a circle repeats a few bytes until the limit ends it, and what is too large is never read. */
const CHAIN = `
  WITH RECURSIVE chain (id, previous, size, depth) AS (
    SELECT id, previous, octet_length(response) + octet_length(input), 0
    FROM responses WHERE owner = ? AND id = ? AND expires > ?
    UNION ALL
    SELECT earlier.id, earlier.previous, octet_length(earlier.response) + octet_length(earlier.input), chain.depth + 1
    FROM chain JOIN responses AS earlier ON earlier.owner = ? AND earlier.id = chain.previous AND earlier.expires > ?
    WHERE chain.depth < ?
  )
  SELECT id, MIN(depth) AS depth, MIN(size) AS size FROM chain GROUP BY id ORDER BY depth DESC`;

const ITEM = `
  SELECT responses.* FROM response_items JOIN responses
    ON responses.owner = response_items.owner AND responses.id = response_items.response
  WHERE response_items.owner = ? AND response_items.item = ? AND responses.expires > ?
  ORDER BY responses.created DESC LIMIT 1`;

/** The part of the store that keeps responses. */
export function createTurns(
  tables: Tables,
  report: ReportError,
): Pick<ResponseStore, 'save' | 'saveIf' | 'renew' | 'find' | 'state' | 'remove' | 'chain' | 'item'> {
  const { statement, atomically } = tables;

  function put(stored: StoredResponse): void {
    const { owner, id, createdAt, expiresAt, response, input, previous, channel, runsUntil } = stored;
    statement(SAVE).run(
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
    statement('DELETE FROM response_items WHERE owner = ? AND response = ?').run(owner, id);
    const insert = statement(
      'INSERT INTO response_items (owner, response, item) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
    for (const item of itemsOf(stored)) {
      if (typeof item['id'] === 'string') insert.run(owner, id, item['id']);
    }
  }

  function decode(row: Row): StoredResponse | undefined {
    const { owner, id, created, expires, previous, channel, runs_until: runsUntil } = row;
    const what = `The response ${String(id)}`;
    const response = readObject(row['response'], what, report);
    const input = response === undefined ? undefined : readObjects(row['input'], what, report);
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

  function read(owner: string, id: string, now: number): StoredResponse | undefined {
    const row: Row | undefined = statement(FIND).get(owner, id, now);
    return row === undefined ? undefined : decode(row);
  }

  function stateOf(owner: string, id: string): ResponseState | undefined {
    const row: Row | undefined = statement(STATE).get(owner, id, nowInSeconds());
    if (row === undefined) return undefined;
    const { status, runs_until: runsUntil } = row;
    return { status: String(status), ...(runsUntil === null ? {} : { runsUntil: Number(runsUntil) }) };
  }

  return {
    async save(response) {
      atomically(() => put(response));
    },

    async saveIf(response, whileStatus) {
      return atomically(() => {
        const state = stateOf(response.owner, response.id);
        if (state === undefined || !whileStatus.includes(state.status)) return false;
        put(response);
        return true;
      });
    },

    async renew(owner, id, runsUntil, whileStatus) {
      return atomically(() => {
        const state = stateOf(owner, id);
        if (state === undefined || !whileStatus.includes(state.status)) return false;
        statement('UPDATE responses SET runs_until = ? WHERE owner = ? AND id = ?').run(runsUntil, owner, id);
        return true;
      });
    },

    async find(owner, id) {
      return read(owner, id, nowInSeconds());
    },

    async state(owner, id) {
      return stateOf(owner, id);
    },

    async remove(owner, id) {
      return atomically(() => {
        const row: Row | undefined = statement(
          'SELECT expires FROM responses WHERE owner = ? AND id = ?',
        ).get(owner, id);
        return deleteResponse(tables, owner, id) && Number(row?.['expires']) > nowInSeconds();
      });
    },

    async chain(owner, id) {
      const now = nowInSeconds();
      const rows: Row[] = statement(CHAIN).all(owner, id, now, owner, now, LONGEST_CHAIN);
      const bytes = rows.reduce((sum, row) => sum + Number(row['size']), 0);
      if (rows.length > LONGEST_CHAIN || bytes > mostText.history) throw tooLong(id);
      const turns: StoredResponse[] = [];
      for (const row of rows) {
        const turn = read(owner, String(row['id']), now);
        if (turn === undefined) return undefined;
        turns.push(turn);
      }
      const before = turns[0]?.previous;
      const isWhole = before === undefined || turns.some((turn) => turn.id === before);
      return turns.length > 0 && isWhole ? turns : undefined;
    },

    async item(owner, id) {
      const row = statement(ITEM).get(owner, id, nowInSeconds());
      const stored = row === undefined ? undefined : decode(row);
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
