import { randomBytes } from 'node:crypto';
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { isItemId, mostText, readObject } from './tables.ts';
import type { ResponseStore } from './index.ts';
import { row, rows, type Row, type Sql, type Work } from '../database/sql.ts';
import type { ReportError } from '../stores.ts';

/** Taking the places counts them and, where rows are locked one by one, keeps others waiting until the items are in. */
const TAKE_PLACES =
  'UPDATE conversations SET positions = positions + ? WHERE owner = ? AND id = ? RETURNING positions';

const INSERT_ITEM = `
  INSERT INTO conversation_items (owner, conversation, position, item, value) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, conversation, item) DO NOTHING RETURNING position`;

const IN_CONVERSATION = 'FROM conversation_items WHERE owner = ? AND conversation = ?';

function* insert(owner: string, conversation: string, item: JsonObject, position: number): Work<boolean> {
  const inserted = yield* row(
    INSERT_ITEM,
    owner,
    conversation,
    position,
    String(item['id']),
    JSON.stringify(item),
  );
  return inserted !== undefined;
}

function* append(
  owner: string,
  conversation: string,
  items: readonly JsonObject[],
): Work<readonly JsonObject[] | undefined> {
  const taken = yield* row(TAKE_PLACES, items.length, owner, conversation);
  if (taken === undefined) return undefined;
  let position = Number(taken['positions']) - items.length;
  const kept: JsonObject[] = [];
  for (const item of items) {
    let named = isItemId(item['id']) ? item : withFreshId(item, 'item');
    if (!(yield* insert(owner, conversation, named, position))) {
      named = withFreshId(item, String(item['id']));
      yield* insert(owner, conversation, named, position);
    }
    kept.push(named);
    position += 1;
  }
  return kept;
}

/** The part of the store that keeps conversations and their items. */
export function createConversations(
  sql: Sql,
  report: ReportError,
): Omit<ResponseStore, 'save' | 'saveIf' | 'renew' | 'find' | 'state' | 'remove' | 'chain'> {
  return { ...storeConversations(sql, report), ...storeItems(sql, report) };
}

function storeConversations(
  { run, atomically }: Sql,
  report: ReportError,
): Pick<
  ResponseStore,
  'createConversation' | 'findConversation' | 'updateConversation' | 'removeConversation'
> {
  return {
    createConversation: ({ owner, id, createdAt, metadata }, items) =>
      atomically(function* () {
        yield* rows(
          'INSERT INTO conversations (owner, id, created, positions, metadata) VALUES (?, ?, ?, 0, ?)',
          owner,
          id,
          createdAt,
          JSON.stringify(metadata),
        );
        yield* append(owner, id, items);
      }),

    async findConversation(owner, id) {
      const found = await run(() =>
        row('SELECT created, metadata FROM conversations WHERE owner = ? AND id = ?', owner, id),
      );
      if (found === undefined) return undefined;
      const metadata = readObject(found['metadata'], `The conversation ${id}`, report);
      return metadata === undefined
        ? undefined
        : { id, owner, createdAt: Number(found['created']), metadata };
    },

    async updateConversation({ owner, id, metadata }) {
      const sql = 'UPDATE conversations SET metadata = ? WHERE owner = ? AND id = ? RETURNING id';
      return (await run(() => row(sql, JSON.stringify(metadata), owner, id))) !== undefined;
    },

    removeConversation: (owner, id) =>
      atomically(function* () {
        // The conversation first, as when items are added to it.
        const sql = 'DELETE FROM conversations WHERE owner = ? AND id = ? RETURNING id';
        const removed = yield* row(sql, owner, id);
        yield* rows('DELETE FROM conversation_items WHERE owner = ? AND conversation = ?', owner, id);
        return removed !== undefined;
      }),
  };
}

function storeItems(
  { run, atomically }: Sql,
  report: ReportError,
): Pick<ResponseStore, 'appendItems' | 'listItems' | 'allItems' | 'findItem' | 'item' | 'removeItem'> {
  const decode = (found: Row | undefined): JsonObject | undefined =>
    found === undefined
      ? undefined
      : readObject(found['value'], `The conversation item ${String(found['item'])}`, report);

  return {
    appendItems: (owner, conversation, items) => atomically(() => append(owner, conversation, items)),

    async listItems(owner, conversation, query) {
      const page = await run(() => readPage(owner, conversation, query));
      if (page === undefined) return undefined;
      return { items: page.found.map(decode).filter((item) => item !== undefined), hasMore: page.hasMore };
    },

    allItems: (owner, conversation) =>
      run(function* () {
        const sum = yield* row(
          `SELECT SUM(octet_length(value)) AS size ${IN_CONVERSATION}`,
          owner,
          conversation,
        );
        if (Number(sum?.['size']) > mostText.history) throw tooLong(conversation);
        const found = yield* rows(
          `SELECT item, value ${IN_CONVERSATION} ORDER BY position`,
          owner,
          conversation,
        );
        return found.map(decode).filter((item) => item !== undefined);
      }),

    async findItem(owner, conversation, item) {
      const sql = `SELECT item, value ${IN_CONVERSATION} AND item = ?`;
      return decode(await run(() => row(sql, owner, conversation, item)));
    },

    async item(owner, id) {
      const sql =
        'SELECT item, value FROM conversation_items WHERE owner = ? AND item = ? ORDER BY position DESC LIMIT 1';
      return decode(await run(() => row(sql, owner, id)));
    },

    async removeItem(owner, conversation, item) {
      const sql = `DELETE ${IN_CONVERSATION} AND item = ? RETURNING item`;
      return (await run(() => row(sql, owner, conversation, item))) !== undefined;
    },
  };
}

/** Reads a page of items. Undefined when `after` names none of them. */
function* readPage(
  owner: string,
  conversation: string,
  { order, limit, after }: Parameters<ResponseStore['listItems']>[2],
): Work<{ readonly found: readonly Row[]; readonly hasMore: boolean } | undefined> {
  const [comparison, direction, edge] =
    order === 'asc' ? ['>', 'ASC', -1] : ['<', 'DESC', Number.MAX_SAFE_INTEGER];
  let from: number = edge;
  if (after !== undefined) {
    const found = yield* row(`SELECT position ${IN_CONVERSATION} AND item = ?`, owner, conversation, after);
    if (found === undefined) return undefined;
    from = Number(found['position']);
  }
  const beyond = `${IN_CONVERSATION} AND position ${comparison} ?`;
  // Sizes first: what does not fit in a page is never read.
  const sizes = yield* rows(
    `SELECT octet_length(value) AS size ${beyond} ORDER BY position ${direction} LIMIT ?`,
    owner,
    conversation,
    from,
    limit + 1,
  );
  let fitting = 0;
  for (let text = 0; fitting < Math.min(limit, sizes.length) && text <= mostText.page; fitting += 1)
    text += Number(sizes[fitting]?.['size']);
  const found = yield* rows(
    `SELECT item, value ${beyond} ORDER BY position ${direction} LIMIT ?`,
    owner,
    conversation,
    from,
    fitting,
  );
  return { found, hasMore: sizes.length > fitting };
}

/** Ids that clients invent may repeat. No message is lost because of that. */
function withFreshId(item: JsonObject, stem: string): JsonObject {
  return { ...item, id: `${stem}_${randomBytes(12).toString('hex')}` };
}

function tooLong(id: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `The conversation '${id}' is too long to be continued: delete items of it, or begin another.`,
    { param: 'conversation' },
  );
}
