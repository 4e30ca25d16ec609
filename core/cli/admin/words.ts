/** Parses positional arguments of commands, and finds the things that they name. */
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import type { AdminRequester } from '../remote.ts';
import { CommandFailure } from './failure.ts';
import type { Operation } from './operations.ts';
import { optionOf } from './options.ts';
import type { Row, Word } from './row.ts';
import { findThing } from './things.ts';

const history = z.object({ records: z.array(z.record(z.string(), z.json())) });

/** Positional arguments by the field that they set. */
export type Words = ReadonlyMap<string, readonly string[]>;

/** Parses the positional arguments. Throws a UsageError when one is missing or unexpected. */
export function wordsOf({ group, verb, words = [] }: Row, positionals: readonly string[]): Words {
  const left = [...positionals];
  const found = new Map<string, readonly string[]>();
  for (const { name, field, many, optional } of words) {
    const texts = many === true ? left.splice(0) : left.splice(0, 1);
    if (texts.length === 0 && optional !== true)
      throw new UsageError(
        `${name} is missing: ${`sluice ${group} ${verb}`.trim()} ${words.map(wordText).join(' ')}.`,
      );
    if (texts.length > 0) found.set(field, texts);
  }
  if (left.length > 0) throw new UsageError(`Unexpected argument "${left[0]}".`);
  return found;
}

/** Formats an argument for the help, such as `[TEAM…]`. */
export function wordText({ name, many, optional }: Word): string {
  const text = many === true ? `${name}…` : name;
  return optional === true ? `[${text}]` : text;
}

/** Fetches the thing that the first argument names; an empty object when the command does not need it. */
export async function foundOf(
  row: Row,
  operation: Operation,
  words: Words,
  request: AdminRequester,
): Promise<JsonObject> {
  const [first] = row.words ?? [];
  const [text = ''] = words.get(first?.field ?? '') ?? [];
  if (first?.thing !== undefined) return findThing(request, first.thing, text);
  const hasVersion = operation.fields.some(({ name }) => name === 'version');
  if (row.prefix === undefined || !(hasVersion || typeof row.operation === 'function')) return {};
  return (await request(
    'GET',
    `/config/entries/${encodeURIComponent(`${row.prefix}${text}`)}`,
  )) as JsonObject;
}

/** Rejects a record of the history that the command does not accept. The gateway itself rejects records that do not exist. */
export async function checkRecord(
  { group }: Row,
  undoes: NonNullable<Row['undoes']>,
  words: Words,
  request: AdminRequester,
): Promise<void> {
  const [text = ''] = words.get('id') ?? [];
  if (!/^\d{1,15}$/.test(text)) return;
  const revision = Number(text);
  const { records } = history.parse(await request('GET', `/config/history?limit=1&before=${revision + 1}`));
  const [record] = records;
  if (record?.['revision'] === revision && !undoes(record as JsonObject))
    throw new CommandFailure(
      `Change ${text} is not in the list of "sluice ${group} history". Use a revision from that list.`,
    );
}

/** Returns the name of the thing that a command changes. */
export function nameOf(row: Row, words: Words, found: JsonObject): JsonValue {
  return found['name'] ?? words.get(row.words?.[0]?.field ?? '')?.[0] ?? '';
}

/** Returns the id for the path. */
export function idOf({ prefix = '' }: Row, { path }: Operation, words: Words, found: JsonObject): string {
  const [text = ''] = words.get('id') ?? [];
  if (prefix !== '') return path.startsWith('/channels/') ? text : `${prefix}${text}`;
  return typeof found['id'] === 'string' ? found['id'] : text;
}

/** Returns the fields that the positional arguments set. */
export function wordFields(row: Row, operation: Operation, words: Words): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {};
  for (const { field, many } of row.words ?? []) {
    const texts = words.get(field);
    const known = operation.fields.find(({ name }) => name === field);
    if (texts === undefined || known === undefined || (field === 'id' && operation.path.includes('{id}')))
      continue;
    const { read } = optionOf(known);
    fields[field] = many === true ? texts.map(read) : (texts[0] ?? '');
  }
  return fields;
}
