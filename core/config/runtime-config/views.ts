/** Views of entries for the admin API: those of the file and those of the run-time part, without their secrets. */
import { basename } from 'node:path';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { walkSecrets } from '../../settings/secret-walk.ts';
import type { EntryName } from '../../state/runtime-config/index.ts';
import type { LoadedConfig } from '../config.ts';
import { shapeOf, type RuntimeDefinitions } from './definitions.ts';
import { isSameValue } from './changes.ts';
import { hiddenSecret, mapSecrets } from './secret-values.ts';

/** An entry that the config file has. */
export interface FileEntry extends EntryName {
  readonly value: JsonValue;
  /** Location of the entry: `gateway.config.ts, channels[0]`. */
  readonly location: string;
  /** Returns the value with its secrets hidden. */
  view(): Promise<JsonValue>;
}

/** Returns the value of an entry of the file with its secrets hidden. References replace the texts that were read for them. */
async function viewOfFileEntry(
  definitions: RuntimeDefinitions,
  named: EntryName,
  value: JsonValue,
): Promise<JsonValue> {
  const schema = await definitions.schemaOf(named, value);
  const referenceTo = (text: string): JsonObject | undefined => {
    const reference = definitions.secretReference(text);
    return reference === undefined ? undefined : { from: reference };
  };
  // An address from a secret manager may have its secret in its path. Its last characters are not shown because they may be part of the secret.
  const withoutAddresses = walkSecrets(schema, value, (part, { kinds, secrecy }) => {
    const isAddress = typeof part === 'string' && kinds.has('url') && secrecy === undefined;
    return isAddress && definitions.hasSecret(part) ? (referenceTo(part) ?? hiddenSecret('')) : undefined;
  }) as JsonValue;
  return mapSecrets(schema, withoutAddresses, (text) => referenceTo(text) ?? hiddenSecret(text));
}

/** Returns what the config file has of the things that entries can be. Functions and other values that are no JSON are left out. */
export async function fileEntries(
  { file, channels, settings }: LoadedConfig,
  definitions: RuntimeDefinitions,
): Promise<readonly FileEntry[]> {
  const within = (path: string): string => `${basename(file)}, ${path}`;
  const entries: Omit<FileEntry, 'view'>[] = channels.map(({ at, entry }) => {
    const { id = entry.spec.name, ...options } = entry.options;
    const value = jsonOf({ type: entry.spec.name, options });
    return { kind: 'channel', name: id, value, location: within(at) };
  });
  for (const [name, value] of Object.entries(settings.prices))
    entries.push({ kind: 'price', name, value: jsonOf(value), location: within('prices') });
  for (const [plugin, { options, spec }] of await definitions.plugins()) {
    if (!isObject(options)) continue;
    for (const kind of ['alias', 'access'] as const) {
      const option: string = spec.editableTables?.[kind] ?? '';
      const found = options[option];
      const location = within(`plugin "${plugin}", option "${option}"`);
      if (!isObject(found)) continue;
      for (const [name, value] of Object.entries(found))
        entries.push({ kind, name, value: jsonOf(value), location });
    }
    for (const option of spec.editable ?? [])
      if (options[option] !== undefined && Object.hasOwn(shapeOf(spec.options) ?? {}, option))
        entries.push({
          kind: 'plugin',
          name: `${plugin}.${option}`,
          value: jsonOf(options[option]),
          location: within(`plugin "${plugin}"`),
        });
  }
  return entries.map((entry) => ({ ...entry, view: () => viewOfFileEntry(definitions, entry, entry.value) }));
}

/** Returns the paths at which two values differ, at most 100. A list counts as a whole. */
export function changedPaths(before: JsonValue | undefined, after: JsonValue | undefined): readonly string[] {
  const paths: string[] = [];
  const compare = (one: JsonValue | undefined, other: JsonValue | undefined, path: string): void => {
    if (paths.length >= 100 || isSameValue(one, other)) return;
    if (!isObject(one) || !isObject(other)) {
      paths.push(path);
      return;
    }
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      compare(one[name], other[name], path === '' ? name : `${path}.${name}`);
  };
  compare(before, after, '');
  return paths;
}

function jsonOf(value: unknown): JsonValue {
  const text = JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'bigint' ? String(inner) : inner,
  );
  return text === undefined ? null : (JSON.parse(text) as JsonValue | JsonObject);
}
