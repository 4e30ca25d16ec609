import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.ts';
import type { JsonObject } from '../model/json.ts';
import { mostText, readObject, type Row, type Tables } from './responses-tables.ts';
import type { ResponseStore } from './responses.ts';
import type { ReportError } from './stores.ts';

/** Taking the places counts them and, where rows are locked one by one, keeps others waiting until the items are in. */
const TAKE_PLACES =
  'UPDATE conversations SET positions = positions + ? WHERE owner = ? AND id = ? RETURNING positions';

const INSERT_ITEM = `
  INSERT INTO conversation_items (owner, conversation, position, item, value) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, conversation, item) DO NOTHING`;

const IN_CONVERSATION = 'FROM conversation_items WHERE owner = ? AND conversation = ?';

/** The part of the store that keeps conversations and their items. */
export function createConversations(
  { statement, atomically }: Tables,
  report: ReportError,
): Omit<ResponseStore, 'save' | 'saveIf' | 'renew' | 'find' | 'state' | 'remove' | 'chain'> {
  function append(
    owner: string,
    conversation: string,
    items: readonly JsonObject[],
  ): readonly JsonObject[] | undefined {
    const row: Row | undefined = statement(TAKE_PLACES).get(items.length, owner, conversation);
    if (row === undefined) return undefined;
    const first = Number(row['positions']) - items.length;
    const insert = (item: JsonObject, position: number): boolean =>
      statement(INSERT_ITEM).run(owner, conversation, position, String(item['id']), JSON.stringify(item))
        .changes !== 0;
    return items.map((item, index) => {
      const named = typeof item['id'] === 'string' && item['id'] !== '' ? item : withFreshId(item, 'item');
      if (insert(named, first + index)) return named;
      const renamed = withFreshId(item, String(item['id']));
      insert(renamed, first + index);
      return renamed;
    });
  }

  function decode(row: Row): JsonObject | undefined {
    return readObject(row['value'], `The conversation item ${String(row['item'])}`, report);
  }

  function read(row: Row | undefined): JsonObject | undefined {
    return row === undefined ? undefined : decode(row);
  }

  return {
    async createConversation({ owner, id, createdAt, metadata }, items) {
      atomically(() => {
        statement(
          'INSERT INTO conversations (owner, id, created, positions, metadata) VALUES (?, ?, ?, 0, ?)',
        ).run(owner, id, createdAt, JSON.stringify(metadata));
        append(owner, id, items);
      });
    },

    async findConversation(owner, id) {
      const row: Row | undefined = statement(
        'SELECT created, metadata FROM conversations WHERE owner = ? AND id = ?',
      ).get(owner, id);
      if (row === undefined) return undefined;
      const metadata = readObject(row['metadata'], `The conversation ${id}`, report);
      return metadata === undefined ? undefined : { id, owner, createdAt: Number(row['created']), metadata };
    },

    async updateConversation({ owner, id, metadata }) {
      const update = statement('UPDATE conversations SET metadata = ? WHERE owner = ? AND id = ?');
      return update.run(JSON.stringify(metadata), owner, id).changes !== 0;
    },

    async removeConversation(owner, id) {
      return atomically(() => {
        statement('DELETE FROM conversation_items WHERE owner = ? AND conversation = ?').run(owner, id);
        return statement('DELETE FROM conversations WHERE owner = ? AND id = ?').run(owner, id).changes !== 0;
      });
    },

    async appendItems(owner, conversation, items) {
      return atomically(() => append(owner, conversation, items));
    },

    async listItems(owner, conversation, { order, limit, after }) {
      let from: number | undefined;
      if (after !== undefined) {
        const row: Row | undefined = statement(`SELECT position ${IN_CONVERSATION} AND item = ?`).get(
          owner,
          conversation,
          after,
        );
        if (row === undefined) return undefined;
        from = Number(row['position']);
      }
      const [comparison, direction, edge] =
        order === 'asc' ? ['>', 'ASC', -1] : ['<', 'DESC', Number.MAX_SAFE_INTEGER];
      const items: JsonObject[] = [];
      let rows = 0;
      let text = 0;
      for (const row of statement(
        `SELECT item, value ${IN_CONVERSATION} AND position ${comparison} ? ORDER BY position ${direction}`,
      ).iterate(owner, conversation, from ?? edge)) {
        if (rows === limit || text > mostText.page) return { items, hasMore: true };
        rows += 1;
        text += String(row['value']).length;
        const item = decode(row);
        if (item !== undefined) items.push(item);
      }
      return { items, hasMore: false };
    },

    async allItems(owner, conversation) {
      const items: JsonObject[] = [];
      let text = 0;
      for (const row of statement(`SELECT item, value ${IN_CONVERSATION} ORDER BY position`).iterate(
        owner,
        conversation,
      )) {
        text += String(row['value']).length;
        if (text > mostText.history) throw tooLong(conversation);
        const item = decode(row);
        if (item !== undefined) items.push(item);
      }
      return items;
    },

    async findItem(owner, conversation, item) {
      return read(
        statement(`SELECT item, value ${IN_CONVERSATION} AND item = ?`).get(owner, conversation, item),
      );
    },

    async item(owner, id) {
      return read(
        statement(
          'SELECT item, value FROM conversation_items WHERE owner = ? AND item = ? ORDER BY position DESC LIMIT 1',
        ).get(owner, id),
      );
    },

    async removeItem(owner, conversation, item) {
      const remove = statement(`DELETE ${IN_CONVERSATION} AND item = ?`);
      return remove.run(owner, conversation, item).changes !== 0;
    },
  };
}

/** Ids that clients invent may repeat; nothing that was said is lost for that. */
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
