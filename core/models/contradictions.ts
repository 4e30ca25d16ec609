/** Finds traits for which a channel kind and the catalogue of models disagree, and corrections that apply to no model. */
import { isDeepStrictEqual } from 'node:util';
import type { ModelTraits } from '../model/traits.ts';
import type { KnownModel } from '../sdk/channel.ts';
import { KnownModels, shippedModels, type ModelList } from './catalogue.ts';
import { correctionsOf, isAbout, shippedCorrections, type Correction } from './corrections.ts';
import { thinksAtAll } from './profile.ts';

/** Traits of a channel kind without a config, for the comparison with the catalogue. */
export interface KindTraits {
  readonly kind: string;
  /** The kind's providers in the catalogue. */
  readonly catalogue: readonly string[];
  traits(model: string): ModelTraits;
  /** Formats that the kind speaks for chat, best first. */
  readonly formats: readonly string[];
  /** Reasoning traits of models that reason according to the catalogue. */
  readonly thinking?: ModelTraits | undefined;
}

/** Trait for which a channel kind states something else than the catalogue. */
export interface Contradiction {
  readonly kind: string;
  readonly model: string;
  readonly trait: string;
  /** Value that the channel kind states. */
  readonly code: unknown;
  /** Value that the catalogue states. */
  readonly catalogue: unknown;
  /** Correction that settles it. Absent: nobody has. */
  readonly correction?: Correction;
}

/** Returns every trait for which a channel kind and the catalogue contradict each other, in the order of kinds and models. */
export function contradictionsOf(
  kinds: readonly KindTraits[],
  list: ModelList = shippedModels(),
): readonly Contradiction[] {
  return kinds.flatMap(({ kind, catalogue, traits, thinking, formats }) => {
    const known = new KnownModels(catalogue, list);
    const general = traits(unknownModel);
    return known.chats().flatMap((model) => {
      const row = known.find(model);
      if (row === undefined) return [];
      const settled = correctionsOf(kind, model, list.date);
      return differences(withoutGeneralLimits(traits(model), general), row, { thinking, formats }).map(
        (difference): Contradiction => {
          const correction = settled.find(({ traits: own }) => Object.hasOwn(own, difference.trait));
          return { kind, model, ...difference, ...(correction === undefined ? {} : { correction }) };
        },
      );
    });
  });
}

/** Returns the corrections that count for no model of the catalogue any more: misspelt, or patterns that are older than the catalogue. */
export function idleCorrections(
  kinds: readonly KindTraits[],
  list: ModelList = shippedModels(),
): readonly Correction[] {
  return shippedCorrections().filter(
    (one) =>
      !kinds.some(
        ({ kind, catalogue }) =>
          one.kinds.includes(kind) &&
          new KnownModels(catalogue, list).chats().some((model) => isAbout(one, model, list.date)),
      ),
  );
}

/** Name that no provider gives to a model. */
const unknownModel = '-';

/** Removes limits that a kind states for all models, because they are defaults for models that the catalogue does not have. */
function withoutGeneralLimits(
  { inputLimit, outputLimit, ...rest }: ModelTraits,
  general: ModelTraits,
): ModelTraits {
  return {
    ...rest,
    ...(inputLimit === undefined || inputLimit === general.inputLimit ? {} : { inputLimit }),
    ...(outputLimit === undefined || outputLimit === general.outputLimit ? {} : { outputLimit }),
  };
}

type Difference = Pick<Contradiction, 'trait' | 'code' | 'catalogue'>;

function differences(
  code: ModelTraits,
  row: KnownModel,
  { thinking, formats }: Pick<KindTraits, 'thinking' | 'formats'>,
): readonly Difference[] {
  const { refuses: _refuses, formats: only, cacheMark: _mark, efforts, ...stated } = row.traits ?? {};
  const ownFormats = only?.filter((format) => formats.includes(format)) ?? [];
  // A kind that states how models reason leaves to the catalogue which of them do.
  const leavesOpen = code.reasoning === undefined || (thinking !== undefined && !thinksAtAll(code));
  const isChatCompletions = (code.formats ?? formats)[0] === 'chat-completions';
  const thinks = leavesOpen ? undefined : thinksAtAll(code);
  const compared: readonly Difference[] = [
    ...Object.entries({ ...KnownModels.limits(row), ...stated }).map(([trait, value]) => ({
      trait,
      code: code[trait as keyof ModelTraits],
      catalogue: value as unknown,
    })),
    { trait: 'formats', code: code.formats, catalogue: ownFormats.length > 0 ? ownFormats : undefined },
    // Without thinking there is no effort.
    { trait: 'efforts', code: thinks === true ? code.efforts : undefined, catalogue: efforts },
    { trait: 'reasoning', code: thinks, catalogue: ability(row, 'reasoning') },
    // In the other formats the list means what its own library makes of a schema.
    ...(isChatCompletions
      ? [{ trait: 'jsonSchema', code: code.jsonSchema, catalogue: ability(row, 'structured-output') }]
      : []),
  ];
  return compared.filter(
    ({ code: one, catalogue: other }) =>
      one !== undefined && other !== undefined && !isDeepStrictEqual(one, other),
  );
}

/** Returns undefined if the row does not have it. */
function ability({ can, cannot }: KnownModel, name: 'reasoning' | 'structured-output'): boolean | undefined {
  if (can?.includes(name) === true) return true;
  return cannot?.includes(name) === true ? false : undefined;
}
