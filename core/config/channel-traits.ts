/** Decides the traits of the models of a channel. */
import { matchesModel } from '../sdk/allowed-models.ts';
import type { ChannelOptions, ChannelParts } from '../sdk/define.ts';
import type { KnownModels } from '../models/catalogue.ts';
import { modelProfile } from '../models/profile.ts';
import type { ModelTraits } from '../model/traits.ts';
import { isNameList } from '../routing/model-names.ts';
import { knownModelOf, type ChannelModels } from './channel-models.ts';
import { withStated } from './traits-option.ts';

/** Sources of the traits of the models of a channel. */
interface TraitSources {
  readonly options: ChannelOptions;
  readonly models: ChannelModels;
  readonly known: KnownModels;
  readonly parts: ChannelParts;
}

/** Returns a function that gives the traits of a model, and keeps them. */
export function traitsOf(
  kind: string,
  { options, models, known, parts }: TraitSources,
): (upstreamModel: string) => ModelTraits {
  const knownOf = knownModelOf(known, models);
  const map = isNameList(models.names) ? undefined : models.names;
  const cache = new Map<string, ModelTraits>();
  // A public name's traits are those of the provider's model behind it.
  const overrides = Object.entries(options.traits ?? {}).map(([name, traits]) => ({
    pattern: [name, map?.[name] ?? name],
    traits,
  }));
  return (upstreamModel) => {
    let traits = cache.get(upstreamModel);
    if (traits === undefined) {
      const { name = models.baseModel(upstreamModel) ?? upstreamModel, model } = knownOf(upstreamModel) ?? {};
      traits = modelProfile({
        kind,
        name,
        defaults: parts.traits?.(name) ?? {},
        thinking: parts.thinking,
        formats: parts.speaks.chat ?? [],
        known: model,
        date: known.date,
      });
      for (const { pattern, traits: own } of overrides)
        if (matchesModel(pattern, upstreamModel)) traits = withStated(traits, pattern, own);
      if (cache.size < 1000) cache.set(upstreamModel, traits);
    }
    return traits;
  };
}
