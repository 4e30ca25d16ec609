/** Builds the profile of a model: its traits by channel kind, catalogue and corrections. */
import type { ModelTraits } from '../model/traits.ts';
import type { KnownModel } from '../sdk/channel.ts';
import { KnownModels } from './catalogue.ts';
import { correctionsOf } from './corrections.ts';

/** Sources of a profile, except for the operator's config. */
export interface ProfileSources {
  /** The channel kind. */
  readonly kind: string;
  /** The model's name, as the channel kind and the catalogue have it. */
  readonly name: string;
  /** Traits that the channel kind states for the name, most of them by patterns. */
  readonly defaults: ModelTraits;
  /** Traits of models that reason only according to the catalogue. Default: an effort, in chat completions and Responses. */
  readonly thinking?: ModelTraits | undefined;
  /** Formats that the channel speaks for chat, best first. */
  readonly formats: readonly string[];
  /** The row of the catalogue, and the day for which the catalogue holds. */
  readonly known?: KnownModel | undefined;
  readonly date: string;
}

/**
 * Returns the profile: the defaults of the channel kind, then the row of the catalogue, then corrections. The row replaces what a pattern
 * says, because it is newer and about exactly this model. What is known better than by the row is a correction.
 */
export function modelProfile(sources: ProfileSources): ModelTraits {
  const { kind, name, defaults, date } = sources;
  const stated = withRow(sources);
  const corrected = correctionsOf(kind, name, date).map(({ traits }) => traits);
  return stated === defaults && corrected.length === 0
    ? defaults
    : withOwnLimit(Object.assign({}, stated, ...corrected) as ModelTraits);
}

function withRow({ defaults, thinking, formats, known, name }: ProfileSources): ModelTraits {
  if (known === undefined) return defaults;
  const own = KnownModels.limits(known);
  const limits = own.outputLimit === undefined ? own : { ...own, statesOutputLimit: true };
  const chats = known.operation === undefined || known.operation === 'chat';
  if (!chats) return { ...defaults, ...limits };
  const { refuses = [], formats: only, efforts, cacheMark, ...stated } = known.traits ?? {};
  const ownFormats = only?.filter((format) => formats.includes(format)) ?? [];
  const base = { ...defaults, ...(ownFormats.length > 0 ? { formats: ownFormats } : {}) };
  // The list names it also where the model is served in a format that has no such mark.
  const marks = cacheMark !== undefined && effortFormats.has((base.formats ?? formats)[0] ?? '');
  const thinks = thinkingOf({ defaults: base, thinking, formats, known, name });
  const refused = [...(thinks.refuses ?? []), ...refuses];
  return {
    ...base,
    ...thinks,
    ...limits,
    ...stated,
    ...(marks ? { cacheMark } : {}),
    ...(efforts === undefined || thinks.reasoning === 'none' ? {} : { efforts }),
    ...(refused.length === 0 ? {} : { refuses: [...new Set([...(base.refuses ?? []), ...refused])] }),
  };
}

/** Formats in which an effort is the ordinary way to control thinking, and `prompt_cache_breakpoint` a mark. */
const effortFormats = new Set(['chat-completions', 'responses']);

/** Returns the reasoning traits of the model. The row determines if it reasons, and the channel kind how reasoning is requested. */
function thinkingOf({
  defaults,
  thinking,
  formats,
  known,
}: Pick<ProfileSources, 'defaults' | 'thinking' | 'formats' | 'known' | 'name'>): Partial<ModelTraits> {
  if (known?.cannot?.includes('reasoning') === true) return { reasoning: 'none' };
  const { reasoning } = defaults;
  if (known?.can?.includes('reasoning') !== true || thinksAtAll(defaults)) return defined(reasoning);
  if (thinking !== undefined) return thinking;
  const [format = ''] = defaults.formats ?? formats;
  return effortFormats.has(format) ? { reasoning: 'effort' } : defined(reasoning);
}

function defined(reasoning: ModelTraits['reasoning']): Partial<ModelTraits> {
  return reasoning === undefined ? {} : { reasoning };
}

/** Returns true when the model thinks, whether or not that can be controlled. */
export function thinksAtAll({ reasoning, thinksByDefault, stopsThinking }: ModelTraits): boolean {
  return reasoning !== 'none' || thinksByDefault === true || stopsThinking === false;
}

/** Limits the output to the context length, because a general output limit can exceed the context of this model. */
function withOwnLimit(profile: ModelTraits): ModelTraits {
  const { inputLimit, outputLimit } = profile;
  if (inputLimit === undefined || outputLimit === undefined || outputLimit <= inputLimit) return profile;
  return { ...profile, outputLimit: inputLimit };
}
