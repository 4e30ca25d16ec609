/** Prints the run-time configuration as TypeScript for gateway.config.ts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { RuntimeEntry, RuntimeSnapshot } from '../../state/runtime-config/index.ts';
import type { LoadedConfig } from '../config.ts';
import { channelValueOf, type RuntimeDefinitions } from './definitions.ts';
import { define, mergeRuntime, describeEntry, findOption } from './merge.ts';
import { mapSecrets } from './secret-values.ts';

/** The run-time part as a file, and the variables that have to be set for it. */
export interface ExportedConfig {
  readonly text: string;
  readonly variables: readonly string[];
}

/** Stands for the secrets that entries refer to: what is printed are the references, also while a manager is down. */
const unread = {
  get: () => Promise.resolve({ text: 'https://secret.invalid/' }),
};

/** Prints the entries that are active. Secrets become references to variables of the environment. */
export async function exportRuntime(
  file: LoadedConfig,
  snapshot: RuntimeSnapshot,
  definitions: RuntimeDefinitions,
): Promise<ExportedConfig> {
  const exporting = new Exporting(file, definitions);
  const { states } = await mergeRuntime({ ...file, secrets: unread }, snapshot, definitions);
  for (const [entry, { state }] of states) {
    // oxlint-disable-next-line no-await-in-loop -- in order
    if (state === 'active') await exporting.add(entry);
    else exporting.leaveOut(`${describeEntry(entry)}: ${state}`);
  }
  return exporting.exported();
}

class Exporting {
  readonly #file: LoadedConfig;
  readonly #definitions: RuntimeDefinitions;
  readonly #imports = new Map<string, string>();
  readonly #variables = new Set<string>();
  /** Names of variables that entries refer to, or that stand for a secret. */
  readonly #taken: Set<string>;
  /** Values to be printed as references. What only looks like one is printed as it is. */
  readonly #references = new WeakSet<object>();
  readonly #leftOut: string[] = [];
  readonly #channels: string[] = [];
  readonly #prices: MutableObject = {};
  readonly #plugins = new Map<string, MutableObject>();
  #readsFiles = false;
  /** Sources that entries refer to. */
  readonly #sources = new Set<string>();

  constructor(file: LoadedConfig, definitions: RuntimeDefinitions) {
    this.#file = file;
    this.#taken = new Set(file.settings.runtimeConfig.env);
    this.#definitions = definitions;
  }

  leaveOut(sentence: string): void {
    this.#leftOut.push(sentence.replaceAll(/\s+/g, ' '));
  }

  async add(entry: RuntimeEntry): Promise<void> {
    const { kind, name, value: stored } = entry;
    if (stored === undefined) return;
    const schema = await this.#definitions.schemaOf(entry, stored);
    const reference = (one: JsonValue): JsonValue => {
      if (isObject(one)) this.#references.add(one);
      return one;
    };
    const value = mapSecrets(
      schema,
      stored,
      (_, path) => reference({ env: this.#variableFor(name, path) }),
      reference,
    );
    if (kind === 'channel') {
      const channel = channelValueOf(value);
      if (channel === undefined) return;
      const { type, options } = channel;
      this.#channels.push(
        `${this.#identifierOf('channels', type)}(${this.#print({ ...options, id: name }, 2)})`,
      );
    } else if (kind === 'price') define(this.#prices, name, value);
    else await this.#addOption(entry, value);
  }

  async #addOption(entry: RuntimeEntry, value: JsonValue): Promise<void> {
    const location = await findOption(this.#definitions, entry);
    if (location === undefined) return;
    const options = this.#plugins.get(location.plugin) ?? {};
    this.#plugins.set(location.plugin, options);
    if (entry.kind === 'plugin') {
      define(options, location.option, value);
      return;
    }
    const before = options[location.option];
    const rows: MutableObject = isObject(before) ? (before as MutableObject) : {};
    define(rows, entry.name, value);
    options[location.option] = rows;
  }

  /** Returns a variable that stands for no other secret: names that differ in signs alone get numbers. */
  #variableFor(name: string, path: string): string {
    const wanted = variableOf(name, path);
    let variable = wanted;
    for (let count = 2; this.#taken.has(variable); count += 1) variable = `${wanted}_${count}`;
    this.#taken.add(variable);
    return variable;
  }

  exported(): ExportedConfig {
    const plugins = [...this.#plugins].map(
      ([name, options]) => `${this.#identifierOf('plugins', name)}(${this.#print(options, 2)})`,
    );
    const prices = this.#print(this.#prices, 0);
    const imports = [...this.#imports].map(([path, name]) => `import ${name} from '${path}';`);
    const variables = [...this.#variables].toSorted();
    const usesEnv = variables.length > 0;
    const sources = [...this.#sources].toSorted();
    const helpers = [
      'defineConfig',
      ...(usesEnv ? ['env'] : []),
      ...(sources.length > 0 ? ['secretFrom'] : []),
    ];
    const text = [
      ...(this.#readsFiles ? ["import { readFileSync } from 'node:fs';"] : []),
      `import { ${helpers.join(', ')} } from 'sluice';`,
      ...imports,
      '',
      ...(usesEnv ? ['// Set these variables:', ...variables.map((name) => `//   ${name}`), ''] : []),
      ...(sources.length > 0
        ? [
            '// List the plugins that offer these sources of secrets:',
            ...sources.map((name) => `//   ${name}`),
            '',
          ]
        : []),
      ...(this.#leftOut.length === 0
        ? []
        : ['// Not in force, and omitted:', ...this.#leftOut.map((line) => `//   ${line}`), '']),
      `export const prices = ${prices};`,
      '',
      `export const channels = ${list(this.#channels)};`,
      '',
      `export const plugins = ${list(plugins)};`,
      '',
      'export default defineConfig({ prices, channels, plugins });',
      '',
    ].join('\n');
    return { text, variables };
  }

  /** Returns the name under which a channel kind or a plugin is imported. */
  #identifierOf(folder: 'channels' | 'plugins', name: string): string {
    const files = ['ts', 'mts', 'js', 'mjs'].flatMap((end) => [`${name}.${end}`, `${name}/index.${end}`]);
    const own = files.find((file) => existsSync(join(this.#file.root, folder, file)));
    const path = own === undefined ? `sluice/${folder}/${name}` : `./${folder}/${own}`;
    const word = name.replaceAll(/[^a-zA-Z0-9]+(\w?)/g, (_, letter: string) => letter.toUpperCase());
    const identifier = `${/^\d/.test(word) ? '_' : ''}${word}${folder === 'channels' ? 'Channel' : 'Plugin'}`;
    this.#imports.set(path, identifier);
    return identifier;
  }

  #print(value: JsonValue, indent: number): string {
    if (isObject(value) && this.#references.has(value)) return this.#printReference(value);
    const inner = ' '.repeat(indent + 2);
    const end = `\n${' '.repeat(indent)}`;
    if (Array.isArray(value)) {
      const items = (value as readonly JsonValue[]).map((one) => this.#print(one, indent + 2));
      return items.length === 0
        ? '[]'
        : `[\n${items.map((one) => `${inner}${one},\n`).join('')}${end.slice(1)}]`;
    }
    if (!isObject(value)) return JSON.stringify(value);
    const members = Object.entries(value).flatMap(([name, one]) =>
      one === undefined ? [] : [`${inner}${memberName(name)}: ${this.#print(one, indent + 2)},\n`],
    );
    return members.length === 0 ? '{}' : `{\n${members.join('')}${end.slice(1)}}`;
  }

  #printReference({ env, file, from }: JsonObject): string {
    if (typeof from === 'string') {
      this.#sources.add(from.slice(0, from.indexOf(':')));
      return `secretFrom(${JSON.stringify(from)})`;
    }
    if (typeof env === 'string') {
      this.#variables.add(env);
      return `env(${JSON.stringify(env)}, '')`;
    }
    this.#readsFiles = true;
    return `readFileSync(${JSON.stringify(file)}, 'utf8').trim()`;
  }
}

/** Returns the name of a member. `__proto__` is put in brackets, because it would set the prototype otherwise. */
function memberName(name: string): string {
  return name === '__proto__' ? '["__proto__"]' : JSON.stringify(name);
}

function list(items: readonly string[]): string {
  return items.length === 0 ? '[]' : `[\n${items.map((one) => `  ${one},\n`).join('')}]`;
}

/** Returns `SLUICE_OPENAI_EU_KEY`. */
function variableOf(name: string, path: string): string {
  const words = `${name}_${path.replace(/^options\./, '')}`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');
  return `SLUICE_${words}`;
}
