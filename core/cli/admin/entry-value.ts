/** Builds the value of a configuration entry from `--type`, `--set`, `--secret` and `--file`. Rejects secrets in arguments. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import type { AdminRequester } from '../remote.ts';

/** The options, as `readArguments` takes them. */
export const valueOptions = {
  type: { type: 'string' },
  set: { type: 'string', multiple: true },
  secret: { type: 'string', multiple: true },
  file: { type: 'string' },
} as const;

/** Help for the options. */
export const valueHelp = `  --type TYPE         Channel kind. "sluice channel types" lists them.
  --set PATH=VALUE    Sets an option, such as priority=2 or headers.set.x-team=blue. Repeat it for several options.
  --secret PATH=FROM  Sets a secret option, such as key. FROM is a file, or - for standard input. With env:NAME or
                      file:PATH the gateway itself reads the secret. --set rejects secrets, because other users of the machine can
                      see arguments.
  --file FILE         Reads all options from a JSON file, or - from standard input.
`;

/** Values of the options. */
export interface ValueOptions {
  readonly type?: string | undefined;
  readonly set?: readonly string[] | undefined;
  readonly secret?: readonly string[] | undefined;
  readonly file?: string | undefined;
}

const object = z.record(z.string(), z.json());
const channelValue = z.object({ type: z.string(), options: object });

/** Returns the value of a channel. `before`: the value that a change starts from. */
export async function channelValueOf(
  request: AdminRequester,
  given: ValueOptions,
  before?: JsonValue,
): Promise<JsonObject> {
  const known = channelValue.safeParse(before).data;
  const type = given.type ?? known?.type;
  if (type === undefined)
    throw new UsageError(
      'The channel kind is missing: add --type TYPE. "sluice channel types" lists all kinds.',
    );
  const form = z
    .object({ schema: object })
    .parse(await request('GET', `/config/channel-types/${encodeURIComponent(type)}`));
  const start = given.type === undefined || given.type === known?.type ? known?.options : undefined;
  return { type, options: objectOf(given, start, form.schema as JsonObject) };
}

/** Returns the object that the options describe. `schema` has the types of fields and which ones are secret. */
export function objectOf(
  given: ValueOptions,
  before: JsonValue | undefined,
  schema?: JsonObject,
): JsonObject {
  const reads = [given.file === '-', ...(given.secret ?? []).map(isFromStdin)].filter(Boolean).length;
  if (reads > 1) throw new UsageError('Only one option can read standard input.');
  const start = given.file === undefined ? object.safeParse(before).data : fileObject(given.file);
  const value = structuredClone(start ?? {});
  for (const text of given.set ?? []) {
    const [path, wanted] = split('--set', text);
    const field = schema === undefined ? undefined : schemaAt(schema, path);
    if (field?.['secret'] !== undefined)
      throw new UsageError(
        `${path.join('.')} may contain a secret. Use --secret ${path.join('.')}=FILE, or =- for standard input.`,
      );
    put(value, path, valueOf(wanted, field));
  }
  for (const text of given.secret ?? []) {
    const [path, from] = split('--secret', text);
    put(value, path, secretOf(from));
  }
  return value as JsonObject;
}

const isFromStdin = (text: string): boolean => text.endsWith('=-');

function split(option: string, text: string): readonly [path: readonly string[], value: string] {
  const at = text.indexOf('=');
  const path = text.slice(0, Math.max(at, 0)).split('.');
  if (at < 1 || path.some((step) => step === '' || step === '__proto__'))
    throw new UsageError(`${option} must have the form PATH=VALUE.`);
  return [path, text.slice(at + 1)];
}

function put(
  value: Record<string, unknown>,
  [step = '', ...rest]: readonly string[],
  wanted: JsonValue,
): void {
  if (rest.length === 0) {
    value[step] = wanted;
    return;
  }
  const inner = Object.hasOwn(value, step) ? value[step] : undefined;
  const next = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? inner : {};
  value[step] = next;
  put(next as Record<string, unknown>, rest, wanted);
}

function schemaAt(schema: JsonObject, path: readonly string[]): JsonObject | undefined {
  let inner: JsonObject | undefined = schema;
  for (const step of path) {
    const properties: JsonValue | undefined = inner?.['properties'];
    inner = isObject(properties) && isObject(properties[step]) ? properties[step] : undefined;
    if (inner?.['secret'] !== undefined) return inner;
  }
  return inner;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses a value by its schema; without one as JSON, or as text if it is not JSON. */
function valueOf(text: string, schema: JsonObject | undefined): JsonValue {
  const types = JSON.stringify(schema ?? {});
  const parsed = parse(text);
  if (schema?.['type'] === 'string') return text;
  if (parsed !== undefined && (typeof parsed !== 'string' || schema === undefined)) return parsed;
  if (types.includes('"array"') && !types.startsWith('{"type":"string"'))
    return text.split(',').map((entry) => entry.trim());
  return text;
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function secretOf(from: string): JsonValue {
  if (from.startsWith('env:')) return { env: from.slice(4) };
  if (from.startsWith('file:')) return { file: from.slice(5) };
  const secret = textFrom(from).trim();
  if (secret === '') throw new UsageError('The secret is empty.');
  return secret;
}

function fileObject(file: string): Record<string, z.core.util.JSONType> {
  const { data } = object.safeParse(parse(textFrom(file)));
  if (data === undefined) throw new UsageError('--file must name a file with one JSON object.');
  return data;
}

/** Maximum length of a file, in characters. */
const mostText = 1024 * 1024;

function textFrom(file: string): string {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch {
    // The message does not contain the name, because it may be a secret that was typed in place of a file.
    throw new UsageError(
      'The file cannot be read. --secret takes a file, or - for standard input, not the secret itself.',
    );
  }
  if (text.length > mostText) throw new UsageError('The file is larger than 1 MiB.');
  return text;
}
