/** Reads, checks and writes the settings of a request (`temperature`, `max_tokens` …) by a table of rows that each format defines. */
import type { ChatSettings } from '../../model/chat.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import {
  given,
  optionalArray,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
} from './check.ts';
import type { SettledName } from '../../sdk/format.ts';
import { wrongType } from '../../sdk/errors.ts';
import { defined } from './fields.ts';

/** Row of the settings table of a format: a `ChatSettings` member and its spelling in this format. */
export interface SettingRow {
  readonly name: keyof ChatSettings;
  /** Dotted path in the body: `temperature`, `generationConfig.topP`. The last row that is given wins on reading; the first row is written. */
  readonly path: string;
  readonly kind: 'number' | 'integer' | 'boolean' | 'string' | 'strings' | 'object';
  readonly min?: number;
  readonly max?: number;
  /** The format's own words into the member's, and back. */
  readonly read?: (value: JsonValue, path: string) => JsonValue | undefined;
  readonly write?: (value: JsonValue) => JsonValue | undefined;
}

/** Reads the value at a dotted path; undefined when any step is absent. */
export function valueAt(body: JsonObject, path: string): JsonValue | undefined {
  if (!path.includes('.')) return body[path];
  let value: JsonValue | undefined = body;
  for (const step of path.split('.')) {
    if (!isObject(value)) return undefined;
    value = value[step];
  }
  return value;
}

/** Writes at a dotted path, making objects on the way. */
export function putAt(body: MutableObject, path: string, value: JsonValue): void {
  const steps = path.split('.');
  const last = steps.pop() ?? path;
  let object = body;
  for (const step of steps) {
    const inner = object[step];
    const next: MutableObject = isObject(inner) ? (inner as MutableObject) : {};
    object[step] = next;
    object = next;
  }
  object[last] = value;
}

/** Takes out what stands at a dotted path, and the object that held it where nothing else is in it. */
export function removeAt(body: MutableObject, path: string): void {
  const [top = path, member] = path.split('.');
  const holder = body[top];
  const rest: MutableObject = member !== undefined && isObject(holder) ? { ...holder } : {};
  if (member !== undefined) delete rest[member];
  if (Object.keys(rest).length > 0) body[top] = rest;
  else delete body[top];
}

/** Returns the client's path of a setting: its first row's, or that of one that spans several fields; its own name where the format has none. */
export function pathsOf(
  rows: readonly SettingRow[],
  spanning: { readonly [Name in keyof ChatSettings]?: string } = {},
): (name: keyof ChatSettings) => string {
  return (name) => spanning[name] ?? rows.find((row) => row.name === name)?.path ?? name;
}

/** Returns a function from a setting to its top-level members of a body: those of the rows, and others that the format adds. */
export function settingPlaces(
  rows: readonly SettingRow[],
  others: { readonly [Name in SettledName]?: readonly string[] },
): (name: SettledName) => readonly string[] {
  const indexes = new Map<string, readonly string[]>(Object.entries(others));
  for (const { name, path } of rows) {
    const [top = path] = path.split('.', 1);
    const before = indexes.get(name) ?? [];
    if (!before.includes(top)) indexes.set(name, [...before, top]);
  }
  return (name) => indexes.get(name) ?? none;
}

/** Reads and checks every setting of the table. One table serves decode, limits and, through `writeSettings`, encode. Throws 400 with the path. */
export function readSettings(body: JsonObject, rows: readonly SettingRow[]): ChatSettings {
  const settings: MutableObject = {};
  for (const index of indexesIn(body, rows)) {
    const row = rows[index];
    if (row === undefined) continue;
    const raw = valueAt(body, row.path);
    if (!given(raw)) continue;
    const value = checkKind(raw, row);
    const read = row.read === undefined ? value : row.read(value, row.path);
    if (read !== undefined) settings[row.name] = read;
  }
  return settings as ChatSettings;
}

/** Returns the indexes of rows whose values may be in the body, in order, because most requests have few of the many settings. */
function indexesIn(body: JsonObject, rows: readonly SettingRow[]): readonly number[] {
  let indexes = indexesByRows.get(rows);
  if (indexes === undefined) {
    const byMember = Map.groupBy(rows.keys(), (index) => rows[index]?.path.split('.', 1)[0] ?? '');
    indexesByRows.set(rows, (indexes = byMember));
  }
  let found: number[] | undefined;
  for (const member in body) {
    const own = indexes.get(member);
    if (own !== undefined) for (const index of own) (found ??= []).push(index);
  }
  return found?.toSorted((one, other) => one - other) ?? none;
}

const none: readonly never[] = [];

/** Places of rows by the member of the body in which their paths begin. */
const indexesByRows = new WeakMap<readonly SettingRow[], ReadonlyMap<string, readonly number[]>>();

function checkKind(raw: JsonValue, row: SettingRow): JsonValue {
  switch (row.kind) {
    case 'number':
    case 'integer':
      return (
        optionalNumber(raw, row.path, {
          integer: row.kind === 'integer',
          ...defined({ min: row.min, max: row.max }),
        }) ?? null
      );
    case 'boolean':
      return optionalBoolean(raw, row.path) ?? null;
    case 'string':
      return optionalString(raw, row.path) ?? null;
    case 'strings': {
      if (typeof raw === 'string') return [raw];
      const list = optionalArray(raw, row.path) ?? [];
      list.forEach((item, index) => {
        if (typeof item !== 'string') throw wrongType(`${row.path}[${index}]`, 'a string');
      });
      return list;
    }
    case 'object':
      return optionalObject(raw, row.path) ?? null;
  }
}

/** Returns the number, moved into the range where it is outside. */
export function moved(value: number, range: { readonly min?: number; readonly max?: number } = {}): number {
  return Math.min(Math.max(value, range.min ?? -Infinity), range.max ?? Infinity);
}

/**
 * Writes settings into a body by the first row of each name. A number outside the row's range is moved to its edge and reported;
 * a setting that has no row, or that the model refuses, is dropped and reported; names in `handled` are left to the codec.
 */
export function writeSettings(
  settings: ChatSettings,
  rows: readonly SettingRow[],
  body: MutableObject,
  options: {
    readonly refuses?: readonly string[] | undefined;
    /** Ranges of the model that are narrower than those of the rows. */
    readonly ranges?: ModelTraits['ranges'] | undefined;
    readonly handled?: ReadonlySet<string>;
    readonly drop: (path: string) => void;
  },
): void {
  const done = new Set<string>();
  for (const row of rows) {
    const value = settings[row.name] as JsonValue | undefined;
    if (value === undefined || done.has(row.name) || options.handled?.has(row.name)) continue;
    done.add(row.name);
    if (options.refuses?.includes(row.name)) {
      // Every provider returns one answer by default.
      if (row.name !== 'choices' || value !== 1) options.drop(`settings.${row.name}`);
      continue;
    }
    let written: JsonValue | undefined = row.write === undefined ? value : row.write(value);
    if (typeof written === 'number') {
      const clamped = moved(moved(written, row), options.ranges?.[row.name]);
      if (clamped !== written) options.drop(`settings.${row.name}`);
      written = clamped;
    }
    if (written === undefined) options.drop(`settings.${row.name}`);
    else putAt(body, row.path, written);
  }
  for (const name of Object.keys(settings)) {
    const value = settings[name as keyof ChatSettings];
    if (value !== undefined && !done.has(name) && !options.handled?.has(name))
      options.drop(`settings.${name}`);
  }
}
