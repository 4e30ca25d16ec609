/** Merges the run-time configuration with what the config file exports. */
import type { JsonObject, JsonValue, MutableObject } from '../../model/json.ts';
import { isObject } from '../../model/json.ts';
import { pricesSchema } from '../../settings/prices.ts';
import type {
  EntryKind,
  EntryName,
  RuntimeEntry,
  RuntimeSnapshot,
} from '../../state/runtime-config/index.ts';
import type { LoadedConfig } from '../config.ts';
import type { Secrets } from '../secrets/index.ts';
import {
  channelValueOf,
  pluginOptionOf,
  priceProblems,
  type OptionLocation,
  type RuntimeDefinitions,
} from './definitions.ts';
import { readReferences, resolveReferences, sharedReader } from './references.ts';

/** State of an entry in relation to the file. `refused`: the entry is invalid, with the reason. */
export interface EntryState {
  readonly state: 'active' | 'disabled' | 'shadowed' | 'inactive' | 'refused';
  readonly reason?: string;
}

/** A configuration of which the run-time part is a part. */
export interface Merged {
  readonly config: LoadedConfig;
  readonly states: ReadonlyMap<RuntimeEntry, EntryState>;
  /** Sentences about entries that do not fit. */
  readonly problems: readonly string[];
}

const nouns: Readonly<Record<EntryKind, string>> = {
  channel: 'channel',
  alias: 'alias',
  price: 'price',
  access: 'model access',
  plugin: 'plugin option',
};

/** Returns `the run-time channel "eu"`, for messages that name other entries by file and position. */
export function describeEntry({ kind, name }: EntryName): string {
  return `the run-time ${nouns[kind]} "${name}"`;
}

/** Returns the entries of channels in their order, then all others by name. */
export function inOrder({
  entries,
  order,
}: Pick<RuntimeSnapshot, 'entries' | 'order'>): readonly RuntimeEntry[] {
  const positions = new Map(order.map((name, index) => [name, index]));
  const positionOf = ({ kind, name }: RuntimeEntry): number =>
    kind === 'channel' ? (positions.get(name) ?? order.length) : Infinity;
  return entries.toSorted((one, other) => {
    const [left, right] = [positionOf(one), positionOf(other)];
    if (left !== right) return left < right ? -1 : 1;
    if (left !== Infinity && one.createdAt !== other.createdAt) return one.createdAt - other.createdAt;
    return `${one.kind}:${one.name}` < `${other.kind}:${other.name}` ? -1 : 1;
  });
}

/** The file's config, and who reads the secrets that entries refer to. */
type FileConfig = Omit<LoadedConfig, 'secrets'> & { readonly secrets?: Pick<Secrets, 'get'> };

/** Merges the entries with the file's config. Omits and reports invalid entries. */
export async function mergeRuntime(
  file: FileConfig,
  snapshot: Pick<RuntimeSnapshot, 'entries' | 'order'>,
  definitions: RuntimeDefinitions,
): Promise<Merged> {
  const merging = new Merging(file, definitions);
  const entries = inOrder(snapshot);
  await Promise.all(entries.map((entry) => merging.read(entry)));
  for (const entry of entries) {
    // oxlint-disable-next-line no-await-in-loop -- in order
    await merging.add(entry);
  }
  return merging.merged();
}

class Merging {
  readonly #file: FileConfig;
  readonly #secrets: Pick<Secrets, 'get'>;
  readonly #definitions: RuntimeDefinitions;
  readonly #states = new Map<RuntimeEntry, EntryState>();
  readonly #problems: string[] = [];
  readonly #channels: LoadedConfig['channels'][number][] = [];
  readonly #prices: Record<string, LoadedConfig['settings']['prices'][string]> = {};
  readonly #options = new Map<string, MutableObject>();

  constructor(file: FileConfig, definitions: RuntimeDefinitions) {
    this.#file = file;
    this.#secrets = sharedReader(file.secrets);
    this.#definitions = definitions;
  }

  /** Reads the secrets of an entry that is going to be used. {@link add} finds them read. */
  async read(entry: RuntimeEntry): Promise<void> {
    const { kind, value, enabled } = entry;
    if (!enabled || value === undefined || (kind !== 'channel' && kind !== 'plugin')) return;
    if ((await fileHas(this.#file, this.#definitions, entry)) !== undefined) return;
    const schema = await this.#definitions.schemaOf(entry, value);
    await readReferences(value, schema, this.#readable);
  }

  async add(entry: RuntimeEntry): Promise<void> {
    const state = await this.#stateOf(entry);
    this.#states.set(entry, state);
    if (state.state === 'refused' && state.reason !== undefined) this.#problems.push(state.reason);
  }

  get #readable() {
    return { settings: this.#file.settings, secrets: this.#secrets };
  }

  merged(): Merged {
    const { settings, channels, secrets: _, ...file } = this.#file;
    return {
      config: {
        ...file,
        settings: { ...settings, prices: { ...this.#prices, ...settings.prices } },
        channels: [...channels, ...this.#channels],
        pluginOptions: this.#options,
      },
      states: this.#states,
      problems: this.#problems,
    };
  }

  async #stateOf(entry: RuntimeEntry): Promise<EntryState> {
    const found = await fileHas(this.#file, this.#definitions, entry);
    if (found !== undefined) return { state: found };
    if (!entry.enabled) return { state: 'disabled' };
    const problems = await this.#use(entry);
    const [reason] = problems;
    return reason === undefined ? { state: 'active' } : { state: 'refused', reason };
  }

  /** Puts an entry into the merged config, or returns why it cannot be there. */
  async #use(entry: RuntimeEntry): Promise<readonly string[]> {
    const { kind, name } = entry;
    const where = describeEntry(entry);
    if (entry.value === undefined)
      return [
        `${where}: its value cannot be decrypted. Set the same SLUICE_SECRET in all gateways, or store the value again.`,
      ];
    const schema = await this.#definitions.schemaOf(entry, entry.value);
    const resolved = await resolveReferences(entry.value, schema, this.#readable, where);
    if ('problem' in resolved) return [resolved.problem];
    const { value } = resolved;
    if (kind === 'channel') {
      const channel = await this.#definitions.channelEntry(name, value);
      if (channel === undefined) {
        const given = channelValueOf(value);
        return [
          given === undefined
            ? `${where}: a channel is { type, options }.`
            : `${where}: there is no channel kind "${given.type.slice(0, 100)}".`,
        ];
      }
      this.#channels.push({ at: where, where, entry: channel });
      return [];
    }
    if (kind === 'price') {
      const problems = priceProblems(name, value, where);
      if (problems.length === 0) Object.assign(this.#prices, pricesSchema.parse({ [name]: value }));
      return problems;
    }
    if (kind === 'plugin' && !(await this.#definitions.isEditable(name)))
      return [`${where}: this option cannot be set at run time. Set it in gateway.config.ts.`];
    const location = await findOption(this.#definitions, entry);
    if (location === undefined) return [`${where}: no enabled plugin uses such entries.`];
    const { plugin, option } = location;
    const options: JsonObject = { [option]: kind === 'plugin' ? value : { [name]: value } };
    const problems = await this.#definitions.optionProblems(plugin, options, where);
    if (problems.length > 0) return problems;
    const all = this.#options.get(plugin) ?? {};
    this.#options.set(plugin, all);
    if (kind === 'plugin') all[option] = value;
    else define(this.#rowsOf(location, all), name, value);
    return [];
  }

  /** Returns the rows of a table, to which more are added: one object for all of them, so that each costs the same. */
  #rowsOf({ option }: OptionLocation, options: MutableObject): MutableObject {
    const before = options[option];
    if (isObject(before)) return before as MutableObject;
    const rows: MutableObject = {};
    options[option] = rows;
    return rows;
  }
}

/** Sets a member, whatever its name: `__proto__` would set the prototype otherwise. */
export function define(object: MutableObject, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns the option of a plugin to which an entry belongs; undefined where no plugin that runs has it. */
export async function findOption(
  definitions: RuntimeDefinitions,
  { kind, name }: EntryName,
): Promise<OptionLocation | undefined> {
  return kind === 'alias' || kind === 'access' ? definitions.tableOf(kind) : pluginOptionOf(name);
}

/** Returns `shadowed` for a name that the file has, `inactive` for one of a plugin that is off. */
export async function fileHas(
  file: Pick<LoadedConfig, 'channels' | 'settings'>,
  definitions: RuntimeDefinitions,
  { kind, name }: EntryName,
): Promise<'shadowed' | 'inactive' | undefined> {
  if (kind === 'channel')
    return file.channels.some(({ entry }) => (entry.options.id ?? entry.spec.name) === name)
      ? 'shadowed'
      : undefined;
  if (kind === 'price') return Object.hasOwn(file.settings.prices, name) ? 'shadowed' : undefined;
  const location = await findOption(definitions, { kind, name });
  const entry = location && (await definitions.plugins()).get(location.plugin);
  if (location === undefined || entry === undefined) return 'inactive';
  const { option } = location;
  if (!isObject(entry.options)) return undefined;
  if (kind === 'plugin') return entry.options[option] === undefined ? undefined : 'shadowed';
  const rows = entry.options[option];
  return isObject(rows) && Object.hasOwn(rows, name) ? 'shadowed' : undefined;
}
