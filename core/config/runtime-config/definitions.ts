/** Schemas for the values of run-time entries, which also validate the config file. */
import { z } from 'zod';
import type { ChannelEntry, ChannelKind, PluginEntry } from '../../sdk/define.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { settingsSchema } from '../../settings/index.ts';
import { rowSchema } from '../../settings/prices.ts';
import { secret } from '../../settings/secret.ts';
import type { EntryName } from '../../state/runtime-config/index.ts';
import { optionsSchema } from '../channel-options.ts';
import { sentences, type LoadedConfig } from '../config.ts';
import { choosePlugins, findChannelKind, findChannelKinds } from '../definitions.ts';
import { hiddenSecret, mapSecrets } from './secret-values.ts';

/** The members of a channel's value. */
export interface ChannelValue {
  /** Name of the channel kind: `openai`. */
  readonly type: string;
  readonly options: JsonObject;
}

/** Kinds of entries that are rows of a table among the options of a plugin. */
export type TableKind = 'alias' | 'access';

/** Plugin option that holds the rows of a kind. */
export interface OptionLocation {
  readonly plugin: string;
  readonly option: string;
}

/** An option of a plugin that administrators may set. */
export interface PluginForm {
  /** Name of its entry: `guard.checks`. */
  readonly name: string;
  readonly schema: JsonObject;
}

/** The options of a channel kind. */
export interface ChannelForm {
  readonly schema: JsonObject;
  /** Names of the options that this kind has beside those of all channels. */
  readonly own: readonly string[];
}

/** Definitions of the channel kinds and plugins of a config, loaded on first use. */
export class RuntimeDefinitions {
  readonly #config: LoadedConfig;
  readonly #kinds = new Map<string, Promise<ChannelKind | undefined>>();
  /** Schemas of plugin options by `plugin.option`. Each row of a table is checked against one. */
  readonly #options = new Map<string, z.ZodType>();
  #plugins: Promise<ReadonlyMap<string, PluginEntry>> | undefined;
  #types: Promise<readonly string[]> | undefined;

  constructor(config: LoadedConfig) {
    this.#config = config;
  }

  /** Returns the reference by which the config file names a secret of this text; undefined where the text stands in the file itself. */
  secretReference(text: string): string | undefined {
    return this.#config.secrets?.referenceOf(text);
  }

  /** Returns true for a text that contains a secret which the config file or an entry names by reference. */
  hasSecret(text: string): boolean {
    return this.#config.secrets?.isWithin(text) === true;
  }

  /** Returns the channel kind of a name. */
  kind(name: string): Promise<ChannelKind | undefined> {
    if (!/^[a-z0-9][a-z0-9-]{0,99}$/.test(name)) return Promise.resolve(undefined);
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const found = findChannelKind(this.#config.root, name, []);
    if (this.#kinds.size < 1_000) this.#kinds.set(name, found);
    return found;
  }

  /** Returns the names of all channel kinds. Loads them on first use. */
  channelTypes(): Promise<readonly string[]> {
    return (this.#types ??= findChannelKinds(this.#config.root, []).then((kinds) =>
      kinds.map(({ spec }) => spec.name).toSorted(),
    ));
  }

  /** Returns the options of a channel kind; undefined for an unknown kind. */
  async channelForm(type: string): Promise<ChannelForm | undefined> {
    const kind = await this.kind(type);
    if (kind === undefined) return undefined;
    const entry = kind();
    const { id: _, ...shape } = optionsSchema(entry).shape;
    return { schema: formOf(z.strictObject(shape)), own: Object.keys(entry.spec.options?.shape ?? {}) };
  }

  /** Returns the schema of a price. */
  priceForm(): JsonObject {
    return formOf(rowSchema);
  }

  /** Returns the editable options of the plugins that run. */
  async pluginForms(): Promise<readonly PluginForm[]> {
    const plugins = await this.plugins();
    return [...plugins].flatMap(([plugin, { spec }]) =>
      (spec.editable ?? []).flatMap((option: string) => {
        const schema = shapeOf(spec.options)?.[option];
        return schema === undefined ? [] : [{ name: `${plugin}.${option}`, schema: formOf(schema) }];
      }),
    );
  }

  /** Returns the value of a run-time entry with its secrets hidden. Its references and addresses stay as they were written. */
  async viewOf(
    named: EntryName,
    value: JsonValue,
    secretsAt: Readonly<Record<string, number>> = {},
  ): Promise<JsonValue> {
    const schema = await this.schemaOf(named, value);
    return mapSecrets(schema, value, (text, path) => hiddenSecret(text, secretsAt[path]));
  }

  /** Returns the plugins that run, with the options that the file gives them. */
  plugins(): Promise<ReadonlyMap<string, PluginEntry>> {
    const { pluginOptions: _, ...file } = this.#config;
    return (this.#plugins ??= choosePlugins(file, []).then(
      ({ chosen }) => new Map(chosen.map(({ entry }) => [entry.spec.name, entry])),
    ));
  }

  /** Returns a schema that marks the secrets in an entry's value. For unknown channels and plugins all texts are secrets. */
  async schemaOf({ kind, name }: EntryName, value?: JsonValue): Promise<z.ZodType> {
    if (kind === 'channel') {
      const entry = await this.channelEntry(name, value);
      return entry === undefined
        ? secret(z.unknown())
        : z.object({ type: z.string(), options: optionsSchema(entry) });
    }
    if (kind !== 'plugin') return z.unknown();
    const { plugin, option } = pluginOptionOf(name);
    const schema = (await this.plugins()).get(plugin)?.spec.options;
    return shapeOf(schema)?.[option] ?? secret(z.unknown());
  }

  /** Returns the entry that a config file would have for a channel; undefined for an unknown kind, or an invalid value. */
  async channelEntry(name: string, value: JsonValue | undefined): Promise<ChannelEntry | undefined> {
    const channel = channelValueOf(value);
    const kind = channel && (await this.kind(channel.type));
    if (channel === undefined || kind === undefined) return undefined;
    return kind({ ...channel.options, id: name });
  }

  /** Returns the table to which entries of a kind add rows; undefined where no plugin that runs has one. */
  async tableOf(kind: TableKind): Promise<OptionLocation | undefined> {
    for (const [plugin, { spec }] of await this.plugins()) {
      const option: string | undefined = spec.editableTables?.[kind];
      if (option !== undefined) return { plugin, option };
    }
    return undefined;
  }

  /** Returns true for an option of a plugin that administrators may set. */
  async isEditable(name: string): Promise<boolean> {
    const { plugin, option } = pluginOptionOf(name);
    return (await this.plugins()).get(plugin)?.spec.editable?.some((one) => one === option) === true;
  }

  /** Returns what is wrong with a row of a plugin's table or with an option of a plugin, as sentences. */
  async optionProblems(plugin: string, options: JsonObject, where: string): Promise<readonly string[]> {
    const schema = (await this.plugins()).get(plugin)?.spec.options;
    const shape = shapeOf(schema);
    const problems: string[] = [];
    for (const [name, value = null] of Object.entries(options)) {
      const own = shape?.[name];
      if (own === undefined) problems.push(`${where}: the plugin "${plugin}" has no option "${name}".`);
      else problems.push(...problemsOfOption(name, this.#optionSchema(plugin, name, own), value, where));
    }
    return problems;
  }

  #optionSchema(plugin: string, option: string, schema: z.ZodType): z.ZodType {
    const key = `${plugin}.${option}`;
    const known = this.#options.get(key) ?? z.object({ [option]: schema });
    this.#options.set(key, known);
    return known;
  }
}

function formOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest as JsonObject;
}

/** Returns the problem of the option as for a config file. `schema`: schema of an object with only this option. */
function problemsOfOption(option: string, schema: z.ZodType, value: JsonValue, where: string): string[] {
  const parsed = schema.safeParse({ [option]: value });
  return parsed.success ? [] : sentences(parsed.error, where);
}

const pricesOption = z.object({ prices: settingsSchema.shape.prices });

/** Returns what is wrong with a price, as sentences. */
export function priceProblems(name: string, value: JsonValue, where: string): readonly string[] {
  return problemsOfOption('prices', pricesOption, { [name]: value }, where);
}

/** Splits `guard.checks`. */
export function pluginOptionOf(name: string): OptionLocation {
  const dot = name.indexOf('.');
  return dot < 0 ? { plugin: name, option: '' } : { plugin: name.slice(0, dot), option: name.slice(dot + 1) };
}

/** Returns the schemas of a plugin's options by their names; undefined where they are not known one by one. */
export function shapeOf(schema: z.ZodType | undefined): Readonly<Record<string, z.ZodType>> | undefined {
  return schema !== undefined && 'shape' in schema
    ? (schema.shape as Readonly<Record<string, z.ZodType>>)
    : undefined;
}

/** Returns the value of a channel; undefined for anything else. */
export function channelValueOf(value: JsonValue | undefined): ChannelValue | undefined {
  if (!isObject(value)) return undefined;
  const { type, options = {}, ...others } = value;
  if (typeof type !== 'string' || !isObject(options) || Object.keys(others).length > 0) return undefined;
  return { type, options };
}
