/** Lists of models of the messages format. */
import { wrongValue } from '../../sdk/errors.ts';
import type { ListedModel } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelListing } from '../../sdk/format.ts';

const defaultLimit = 20;
const largestLimit = 1000;
/** The largest number of seconds that a JavaScript date can hold. */
const lastSecond = 8_640_000_000_000;

function one(model: ListedModel): JsonObject {
  return {
    type: 'model',
    id: model.id,
    display_name: model.id,
    created_at: timeOf(model.created),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    max_input_tokens: model.inputLimit ?? null,
    max_tokens: model.outputLimit ?? null,
    capabilities: null,
  };
}

/** Returns a time of RFC 3339 without fractions; the epoch stands for unknown. */
function timeOf(seconds: number): string {
  const known = Number.isFinite(seconds) && seconds > 0 && seconds <= lastSecond ? seconds : 0;
  return new Date(Math.trunc(known) * 1000).toISOString().replace('.000Z', 'Z');
}

function list(models: readonly ListedModel[], query: URLSearchParams): JsonObject {
  const limit = limitOf(query.get('limit'));
  const sorted = models.toSorted((a, b) => b.created - a.created);
  const before = positionOf(sorted, query.get('before_id'), 'before_id');
  const after = before === undefined ? positionOf(sorted, query.get('after_id'), 'after_id') : undefined;
  const start = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit);
  const end = before ?? start + limit;
  const page = sorted.slice(start, end);
  return {
    data: page.map(one),
    has_more: before === undefined ? end < sorted.length : start > 0,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return defaultLimit;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > largestLimit) {
    throw wrongValue('limit', `an integer between 1 and ${largestLimit}`);
  }
  return limit;
}

function positionOf(models: readonly ListedModel[], id: string | null, param: string): number | undefined {
  if (id === null || id === '') return undefined;
  const position = models.findIndex((model) => model.id === id);
  if (position < 0) throw wrongValue(param, 'the id of a listed model');
  return position;
}

/** The model list: newest first, in pages before or after an id. */
export const modelListing: ModelListing = { list, one };
