/** Runs one command that uses the admin API. */
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { readArguments, UsageError } from '../command.ts';
import { remoteOptions, type AdminRequester, type RemoteAccess, type WriteAdmin } from '../remote.ts';
import { confirm } from './confirm.ts';
import { checkFields, ownFieldsOf, parts, withIds } from './fields.ts';
import type { Operation, Operations } from './operations.ts';
import { configOf, readFields, type Given } from './options.ts';
import { listLimits, readList } from './page.ts';
import { printAnswer, printList } from './print.ts';
import type { Row } from './row.ts';
import { commonOptions, operationOf, optionsOf } from './row-options.ts';
import { checkRecord, foundOf, idOf, nameOf, wordFields, wordsOf } from './words.ts';

/** Access to the gateway of a command. */
export interface Gateway {
  readonly access: RemoteAccess;
  readonly operations: Operations;
  readonly request: AdminRequester;
  readonly write: WriteAdmin;
}

/** Runs a command with the arguments behind its verb, and returns the exit code. */
export async function perform(row: Row, args: readonly string[], gateway: Gateway): Promise<number> {
  const { request, operations } = gateway;
  const operation = operationOf(row, operations);
  const options = optionsOf(row, operation);
  const { values, positionals } = readArguments(args, {
    ...remoteOptions,
    ...commonOptions(row, operation),
    ...configOf(options),
  });
  const given: Given = { ...row.defaults, ...(values as Given) };
  const words = wordsOf(row, positionals);
  const found = await foundOf(row, operation, words, request);
  const actual = operationOf(row, operations, found);
  const fields = {
    ...(await withIds(request, options, readFields(options, given))),
    ...wordFields(row, actual, words),
    ...(row.fixed as Readonly<Record<string, JsonValue>> | undefined),
    ...(await ownFieldsOf(row, actual, { given, found, request })),
  };
  checkFields(actual, options, fields);
  if (row.undoes !== undefined) await checkRecord(row, row.undoes, words, request);
  if (row.asks !== undefined) await confirm(row.asks, { ...found, name: nameOf(row, words, found) }, given);
  const path = actual.path.replace('{id}', encodeURIComponent(idOf(row, actual, words, found)));
  const { query, body } = parts(actual, fields);
  if (actual.isCsv) {
    await gateway.write(`${path}?${new URLSearchParams(query)}`);
    return 0;
  }
  const { shown = {} } = row;
  if (shown.list !== undefined) {
    const hasLimit = actual.fields.some(({ name }) => name === 'limit');
    const listed = await readList(request, {
      operation: actual,
      path,
      query,
      member: shown.list,
      keeps: shown.keeps,
      limit: given['all'] === true || !hasLimit ? undefined : limitOf(given),
    });
    return printList(listed, shown.columns ?? [], given);
  }
  const search = new URLSearchParams(query).toString();
  const answer = await request(
    actual.method,
    search === '' ? path : `${path}?${search}`,
    actual.hasBody ? body : undefined,
    headersOf(actual, given, found),
  );
  return printAnswer(shown, answer as JsonObject, {
    found: { ...found, name: nameOf(row, words, found) },
    isJson: given['json'] === true,
    url: gateway.access.url,
  });
}

function limitOf(given: Given): number {
  const text = given['limit'];
  if (text === undefined) return listLimits.usual;
  const limit = Number(text);
  if (!/^\d{1,6}$/.test(String(text)) || limit < 1 || limit > listLimits.most)
    throw new UsageError(`--limit must be a number from 1 to ${listLimits.most}.`);
  return limit;
}

function headersOf(
  { creates, takesVersion }: Operation,
  given: Given,
  found: JsonObject,
): Record<string, string> {
  const version = given['if-match'] ?? found['version'];
  const key = given['idempotency-key'];
  return {
    ...(creates && key !== undefined && { 'idempotency-key': String(key) }),
    ...(takesVersion && typeof version === 'string' && { 'if-match': `"${version}"` }),
  };
}
