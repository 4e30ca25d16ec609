import { sqlOf } from '../database/sql.ts';
import type { ReportError, Stores } from '../stores.ts';
import { createConversations } from './conversations.ts';
import type { ResponseStore } from './index.ts';
import { sweepResponses } from './tables.ts';
import { createTurns } from './turns.ts';

/**
 * Opens what the gateway's database keeps. Expired responses are removed while the database is open. `report` is called for damaged rows.
 */
export function openResponseStore(stores: Stores, report: ReportError = () => {}): ResponseStore {
  const sql = sqlOf(stores.database);
  sweepResponses(sql, report);
  const turns = createTurns(sql, report);
  const conversations = createConversations(sql, report);
  return {
    ...turns,
    ...conversations,
    item: async (owner, id) => (await turns.item(owner, id)) ?? conversations.item(owner, id),
  };
}
