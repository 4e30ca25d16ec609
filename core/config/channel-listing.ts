/** Lists the models of a channel: those that the config names, those that are known, and those that its provider lists. */
import { isNameList, publicNames } from '../routing/model-names.ts';
import type { ModelDiscovery } from '../routing/model-discovery.ts';
import type { KnownModels } from '../models/catalogue.ts';
import type { ChannelParts } from '../sdk/define.ts';
import { knownModelOf, type ChannelModels } from './channel-models.ts';

/** Source of the models of a channel. */
interface ModelSources {
  readonly known: KnownModels;
  readonly models: ChannelModels;
  readonly parts: ChannelParts;
  /** True for a channel that serves what its provider lists, and nothing else. */
  readonly servesAll: boolean;
  readonly discovery: ModelDiscovery | undefined;
}

/** Returns a function that lists the models of a channel: those that are named or known, and those that its provider lists. */
export function listingOf({
  known,
  models,
  parts,
  servesAll,
  discovery,
}: ModelSources): () => readonly string[] {
  const { names } = models;
  const knownOf = knownModelOf(known, models);
  const publicOf = publicNames(names);
  const fixed = [
    ...namesOf(names).filter((name) => !isPattern(name)),
    ...known.names(parts.speaks).flatMap(publicOf),
  ];
  // Omits models of the provider's list that are known to be for other operations.
  const isServed = (upstreamModel: string): boolean => {
    const { model } = knownOf(upstreamModel) ?? {};
    return model === undefined || parts.speaks[model.operation ?? 'chat'] !== undefined;
  };
  const listedBeside = (found: readonly string[]): readonly string[] => [
    ...new Set([
      ...fixed,
      ...found.filter(isServed).flatMap((name) => (servesAll ? [name] : publicOf(name))),
    ]),
  ];
  let listed = listedBeside([]);
  let found: ReadonlySet<string> | undefined;
  return () => {
    if (found !== discovery?.names) {
      found = discovery?.names;
      listed = listedBeside([...(found ?? [])]);
    }
    return listed;
  };
}

/** Returns the names and patterns of models that the config gives. */
export function namesOf(names: ChannelModels['names']): readonly string[] {
  return isNameList(names) ? names : Object.keys(names);
}

/** Returns true for a name that stands for several. */
export function isPattern(name: string): boolean {
  return name.includes('*');
}
