/** Finds the operations and options of the commands in the table. */
import type { ParseArgsOptionsConfig } from 'node:util';
import type { JsonObject } from '../../model/json.ts';
import { valueOptions } from './entry-value.ts';
import { CommandFailure } from './failure.ts';
import { bodyFields, type Operation, type Operations } from './operations.ts';
import { optionOf, type Option } from './options.ts';
import type { Row } from './row.ts';

/** Fields that commands set without an option. */
const ownFields: ReadonlySet<string> = new Set(['limit', 'after', 'before', 'version', 'revision', 'value']);

/** Returns the operation of a row. `thing`: the thing that its first argument names; empty when it is not known. */
export function operationOf(row: Row, operations: Operations, thing: JsonObject = {}): Operation {
  const wanted = typeof row.operation === 'function' ? row.operation(thing) : row.operation;
  if (typeof wanted === 'object')
    return {
      name: wanted.path,
      method: wanted.method,
      path: wanted.path,
      fields: wanted.body === undefined ? [] : bodyFields(wanted.body),
      hasBody: wanted.body !== undefined,
      creates: false,
      isCsv: false,
      takesVersion: false,
    };
  const found = operations.get(wanted);
  if (found === undefined)
    throw new CommandFailure(
      `The gateway has no operation ${wanted}, because it runs another version of Sluice. Use the same version for both.`,
    );
  return found;
}

/** Returns the options of a row for the fields of its operation. */
export function optionsOf(row: Row, operation: Operation): readonly Option[] {
  const words = new Set((row.words ?? []).map(({ field }) => field));
  return operation.fields
    .filter(
      ({ name }) =>
        !ownFields.has(name) &&
        !words.has(name) &&
        !Object.hasOwn(row.fixed ?? {}, name) &&
        (row.options?.includes(name) ?? true),
    )
    .map(optionOf);
}

/** Returns the options of a row that are not fields of its operation. */
export function commonOptions(
  row: Row,
  { creates, takesVersion, fields }: Operation,
): ParseArgsOptionsConfig {
  const isList = row.shown?.list !== undefined;
  const hasField = (...names: readonly string[]): boolean => fields.some(({ name }) => names.includes(name));
  const isSwitch = { type: 'boolean' } as const;
  const isText = { type: 'string' } as const;
  return {
    json: isSwitch,
    ...(isList && { csv: isSwitch }),
    ...(isList && hasField('limit') && { limit: isText }),
    ...(isList && hasField('after', 'before') && { all: isSwitch }),
    ...(row.asks !== undefined && { yes: isSwitch }),
    ...(creates && { 'idempotency-key': isText }),
    ...(takesVersion && { 'if-match': isText }),
    ...(row.value !== undefined && valueOptions),
  };
}
