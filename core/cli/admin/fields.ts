/** Fields of a request that come from the gateway, and the validation of all fields. */
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import type { AdminRequester } from '../remote.ts';
import { channelValueOf, objectOf, type ValueOptions } from './entry-value.ts';
import { CommandFailure } from './failure.ts';
import type { Operation } from './operations.ts';
import type { Given, Option } from './options.ts';
import type { Row } from './row.ts';
import { findThing, isId } from './things.ts';

/** Replaces names of owners by their ids. */
export async function withIds(
  request: AdminRequester,
  options: readonly Option[],
  fields: Record<string, JsonValue>,
): Promise<Record<string, JsonValue>> {
  const changed = { ...fields };
  for (const { field, thing } of options) {
    const value = fields[field.name];
    // oxlint-disable no-await-in-loop -- few, one after the other
    if (thing !== undefined && typeof value === 'string' && !isId(thing, value))
      changed[field.name] = (await findThing(request, thing, value))['id'] ?? value;
    if (field.name === 'teams' && Array.isArray(value)) {
      const teams: JsonValue[] = [];
      for (const one of value as JsonObject[])
        teams.push({ ...one, team: (await findThing(request, 'team', String(one['team'])))['id'] ?? '' });
      changed[field.name] = teams;
    }
    // oxlint-enable no-await-in-loop
  }
  return changed;
}

/** Returns the fields that no option sets: the version that is changed, and the value of an entry. */
export async function ownFieldsOf(
  row: Row,
  operation: Operation,
  {
    given,
    found,
    request,
  }: { readonly given: Given; readonly found: JsonObject; readonly request: AdminRequester },
): Promise<Record<string, JsonValue>> {
  const takes = (field: string): boolean => operation.fields.some(({ name }) => name === field);
  const options = given as ValueOptions;
  const isChange = operation.method === 'PATCH';
  if (
    isChange &&
    row.value !== undefined &&
    [options.set, options.secret, options.file, options.type].every((one) => one === undefined)
  )
    throw new UsageError('No change is given. Use --set, --secret or --file.');
  if (takes('version') && found['version'] === undefined)
    throw new CommandFailure(`${String(found['id'])} is defined in gateway.config.ts. Change it there.`);
  const revision = takes('revision')
    ? ((await request('GET', '/config?limit=1')) as JsonObject)['revision']
    : undefined;
  return {
    ...(takes('version') && { version: found['version'] ?? 0 }),
    ...(revision !== undefined && { revision }),
    ...(row.value === 'channel' && { value: await channelValueOf(request, options, found['value']) }),
    ...(row.value === 'object' && { value: objectOf(options, found['value']) }),
  };
}

/** Throws a UsageError when a required option is missing, or when an update has no changes. */
export function checkFields(operation: Operation, options: readonly Option[], fields: JsonObject): void {
  const missing = options.find(({ field }) => field.isRequired && fields[field.name] === undefined);
  if (missing !== undefined)
    throw new UsageError(`${`--${missing.flag} ${missing.shows}`.trimEnd()} is missing.`);
  if (operation.method === 'PATCH' && Object.keys(fields).length === 0)
    throw new UsageError(
      `No change is given. Use options such as ${options
        .slice(0, 4)
        .map(({ flag }) => `--${flag}`)
        .join(', ')} ….`,
    );
}

/** Splits fields into query and body. */
export function parts(operation: Operation, fields: Readonly<Record<string, JsonValue>>) {
  const query: Record<string, string> = {};
  const body: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(fields)) {
    const field = operation.fields.find((one) => one.name === name);
    if (field?.in === 'query') query[name] = String(value);
    else body[name] = value;
  }
  return { query, body };
}
