/** Splits the `models` option into names and base models. */
import type { KnownModel } from '../sdk/channel.ts';
import type { ChannelOptions } from '../sdk/define.ts';
import { isNameList, modelNames, namesProblem, publicNames, type NameMap } from '../routing/model-names.ts';
import type { KnownModels } from '../models/catalogue.ts';

type ModelsOption = Exclude<NonNullable<ChannelOptions['models']>, 'discover'>;

/** The `models` option of a channel, taken apart. */
export interface ChannelModels {
  /** Public names, or a map from public name to the provider's name. */
  readonly names: readonly string[] | NameMap;
  /** The base model of a provider's name, where the option states one. */
  readonly baseModel: (upstreamModel: string) => string | undefined;
  /** The base models as they are written, for warnings. */
  readonly baseModels: readonly string[];
}

/** Splits the option into names and base models. */
export function readModels(models: ModelsOption): ChannelModels {
  if (isNameList(models)) return { names: models, baseModel: () => undefined, baseModels: [] };
  const entries = Object.entries(models);
  const bases = entries.flatMap(([, target]) =>
    typeof target === 'string' || target.baseModel === undefined ? [] : [[target.name, target.baseModel]],
  ) as [string, string][];
  return {
    names: Object.fromEntries(entries.map(([name, target]) => [name, upstreamName(target)])),
    baseModel: modelNames(Object.fromEntries(bases)),
    baseModels: [...new Set(bases.map(([, base]) => base))],
  };
}

function upstreamName(target: string | { readonly name: string }): string {
  return typeof target === 'string' ? target : target.name;
}

/** Returns what is wrong with the option, as the end of a sentence; undefined when it is sound. */
export function modelsProblem(models: ModelsOption): string | undefined {
  if (isNameList(models)) return undefined;
  const bases = new Map<string, string>();
  for (const target of Object.values(models)) {
    if (typeof target === 'string' || target.baseModel === undefined) continue;
    const { name, baseModel } = target;
    const other = bases.get(name) ?? baseModel;
    if (other !== baseModel) return `"${name}" has two base models, "${other}" and "${baseModel}": set one`;
    bases.set(name, baseModel);
  }
  return namesProblem(readModels(models).names) ?? namesProblem(Object.fromEntries(bases));
}

/** Returns a sentence for each base model that the catalogue does not have, so that it has no price. */
export function baseModelWarnings(known: KnownModels, { baseModels }: ChannelModels): readonly string[] {
  return baseModels
    .filter((name) => !name.includes('*') && find(known, name) === undefined)
    .map(
      (name) =>
        `baseModel "${name}" is not in the catalogue and has no price. Check the spelling, name the provider (PROVIDER/MODEL), or set "prices".`,
    );
}

function find(known: KnownModels, baseModel: string): KnownModel | undefined {
  return known.find(baseModel) ?? known.ofProvider(baseModel);
}

/**
 * Returns a function that finds what the catalogue knows of a provider's model. Names that operators choose, as those of Azure deployments,
 * are in no catalogue: there the stated base model counts, else the public name under which the channel serves the model.
 */
export function knownModelOf(
  known: KnownModels,
  { names, baseModel }: ChannelModels,
): (upstreamModel: string) => { readonly name: string; readonly model: KnownModel } | undefined {
  const patterns = publicNames(names);
  const exact = new Map<string, string[]>();
  for (const [name, target] of isNameList(names) ? [] : Object.entries(names))
    if (!name.includes('*')) exact.set(target, [...(exact.get(target) ?? []), name]);
  return (upstreamModel) => {
    const base = baseModel(upstreamModel);
    const candidates =
      base === undefined
        ? [upstreamModel, ...(exact.get(upstreamModel) ?? []), ...patterns(upstreamModel)]
        : [base];
    for (const name of candidates) {
      const model = base === undefined ? known.find(name) : find(known, name);
      if (model !== undefined) return { name, model };
    }
    return undefined;
  };
}
