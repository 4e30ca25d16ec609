/** Rows of the table `usage_attempts`, with the failed attempts of calls. */
import { isObject, type JsonObject } from '../../model/json.ts';
import type { UsageRecord } from '../../model/usage-record.ts';
import { clean, text, whole } from './values.ts';

/** Columns of `usage_attempts`. */
export const attemptNames = ['at', 'id', 'number', 'channel', 'model', 'code', 'message'] as const;

type AttemptRow = Record<(typeof attemptNames)[number], string | number>;

/** Returns a row for each failed attempt of a call. A hedge that another attempt outran has not failed. */
export function attemptRows({ at, id, attempts = [] }: UsageRecord): AttemptRow[] {
  const rows: AttemptRow[] = [];
  for (const { channel, model, failure, cause } of attempts) {
    if (typeof channel !== 'string' || typeof failure !== 'string' || failure === 'hedged') continue;
    rows.push({
      at: whole(at),
      id,
      number: rows.length,
      channel: text(channel) ?? '',
      model: typeof model === 'string' ? (text(model) ?? '') : '',
      code: text(failure) ?? '',
      message: clean(messageOf(cause)),
    });
  }
  return rows;
}

function messageOf(cause: JsonObject[string]): string {
  return isObject(cause) && typeof cause.message === 'string' ? cause.message : '';
}
