/** Makes the value of an entry of the configuration from `--type`, `--set`, `--secret` and `--file`. Options marked as secret are never arguments. */
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
export const valueHelp = `  --type TYPE         Kind of the channel: see sluice channel types.
  --set PATH=VALUE    Sets an option, such as priority=2 or headers.set.x-team=blue. Repeat it for several.
  --secret PATH=FROM  Sets a secret, such as key: FROM is a file, - for standard input, env:NAME or file:PATH for what
                      the gateway reads by itself. Options marked as secret are never arguments, because other users see those.
  --file FILE         Reads all options from a file with a JSON object, - for standard input.
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

/** Returns the value of a channel. `before` is what a change begins with. */
export async function channelValueOf(
  request: AdminRequester,
  given: ValueOptions,
  before?: JsonValue,
): Promise<JsonObject> {
  const known = channelValue.safeParse(before).data;
  const type = given.type ?? known?.type;
  if (type === undefined)
    throw new UsageError('Say which kind of channel: --type TYPE, one of sluice channel types.');
  const form = z
    .object({ schema: object })
    .parse(await request('GET', `/config/channel-types/${encodeURIComponent(type)}`));
  const start = given.type === undefined || given.type === known?.type ? known?.options : undefined;
  return { type, options: objectOf(given, start, form.schema as JsonObject) };
}

/** Returns the object that the options make. `schema` tells secrets and types of fields. */
export function objectOf(
  given: ValueOptions,
  before: JsonValue | undefined,
  schema?: JsonObject,
): JsonObject {
  const reads = [given.file === '-', ...(given.secret ?? []).map(isFromStdin)].filter(Boolean).length;
  if (reads > 1) throw new UsageError('Standard input can be read once.');
  const start = given.file === undefined ? object.safeParse(before).data : fileObject(given.file);
  const value = structuredClone(start ?? {});
  for (const text of given.set ?? []) {
    const [path, wanted] = split('--set', text);
    const field = schema === undefined ? undefined : schemaAt(schema, path);
    if (field?.['secret'] !== undefined)
      throw new UsageError(
        `${path.join('.')} may hold a secret: write --secret ${path.join('.')}=FILE, or - for standard input.`,
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
    throw new UsageError(`${option} takes PATH=VALUE.`);
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

/** Reads a value: as its schema says, else JSON where it is some, else a text. */
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
  if (data === undefined) throw new UsageError('--file takes a file with one JSON object.');
  return data;
}

/** Largest file that is read, in characters. */
const mostText = 1024 * 1024;

function textFrom(file: string): string {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch {
    // A mistyped secret must not be repeated.
    throw new UsageError(
      'The file cannot be read. A secret itself is no argument: give a file, or - for standard input.',
    );
  }
  if (text.length > mostText) throw new UsageError('The file is too large.');
  return text;
}
