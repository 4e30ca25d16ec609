/** `thinkingConfig` and thought signatures, in both directions. */
import { isObject, type JsonObject } from '../../model/json.ts';
import { budgetOfEffort, effortFrom, efforts, type Effort, type Reasoning } from '../../model/reasoning.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { optionalBoolean, optionalNumber, optionalString } from '../_shared/check.ts';
import type { Proof } from '../../model/extra.ts';
import { sealProof, unsealProof } from '../_shared/proof.ts';
import { formatName } from './wire.ts';
import { effortOf, nearestEffort } from '../_shared/reasoning.ts';
import { moved } from '../_shared/settings.ts';
import { defined, setOf } from '../_shared/fields.ts';

const base = 'generationConfig.thinkingConfig';

/** Decodes `thinkingConfig` as neutral reasoning; undefined when it has no effect. */
export function readReasoning(body: JsonObject): Reasoning | undefined {
  const config = isObject(body.generationConfig) ? body.generationConfig : {};
  const thinking = isObject(config.thinkingConfig) ? config.thinkingConfig : {};
  const show = optionalBoolean(thinking.includeThoughts, `${base}.includeThoughts`);
  const budget = optionalNumber(thinking.thinkingBudget, `${base}.thinkingBudget`, {
    integer: true,
    min: -1,
  });
  const level = optionalString(thinking.thinkingLevel, `${base}.thinkingLevel`);
  const effort = effortFrom(level);
  if (show === undefined && budget === undefined && effort === undefined) return undefined;
  return defined({ effort, budget, show });
}

/** Values of the display that are equivalent to `includeThoughts`. */
const plainDisplays = setOf('auto summarized omitted');

/** Reasoning settings, and the model that they are for. */
export interface ReasoningOptions {
  readonly reasoning: Reasoning;
  readonly traits: ModelTraits;
  /** Includes thoughts if reasoning is requested and its visibility is not set. */
  readonly showByDefault: boolean;
  readonly drop: (path: string) => void;
}

/** Returns the `thinkingConfig` for this model; undefined if it would be empty. Reports changed settings. */
export function writeReasoning(options: ReasoningOptions): JsonObject | undefined {
  const { reasoning, traits, showByDefault, drop } = options;
  if (traits.reasoning === 'none' || traits.refuses?.includes('reasoning')) {
    drop('settings.reasoning');
    return undefined;
  }
  if (reasoning.mode === 'between-tools') drop('settings.reasoning.mode');
  if (reasoning.display !== undefined && !plainDisplays.has(reasoning.display))
    drop('settings.reasoning.display');
  const thinkingFields = traits.reasoning === 'budget' ? encodeBudget(options) : encodeLevel(options);
  const includeThoughts = reasoning.show ?? (showByDefault && asksToThink(reasoning) ? true : undefined);
  const config: JsonObject = defined({ ...thinkingFields, includeThoughts });
  return Object.keys(config).length === 0 ? undefined : config;
}

function asksToThink({ mode, effort, budget }: Reasoning): boolean {
  if (mode === 'off' || effort === 'none' || budget === 0) return false;
  return mode === 'on' || mode === 'adaptive' || effort !== undefined || budget !== undefined;
}

const levels: readonly Effort[] = ['minimal', 'low', 'medium', 'high'];

function encodeLevel(options: ReasoningOptions): JsonObject {
  return { thinkingLevel: effortFor(options, levels) };
}

/** Thinking tokens that every model with budgets takes. */
const usualBudget = { min: 512, max: 24_576 };

function encodeBudget(options: ReasoningOptions): JsonObject {
  const { mode, budget } = options.reasoning;
  const range = options.traits.thinkingBudget ?? usualBudget;
  if (mode !== 'off' && budget !== undefined && budget !== 0) {
    // -1 leaves the number to the model.
    const taken = budget < 0 ? budget : moved(budget, range);
    if (taken !== budget) options.drop('settings.reasoning.budget');
    return { thinkingBudget: taken };
  }
  const effort = effortFor(options, ['none', ...levels]);
  if (effort === undefined) return mode === 'on' || mode === 'adaptive' ? { thinkingBudget: -1 } : {};
  if (effort === 'none') return { thinkingBudget: 0 };
  // 0 if the client switches reasoning off, which is then clamped to the lowest allowed budget.
  const wanted =
    effortOf(options.reasoning) === 'none' ? 0 : effort === 'minimal' ? 512 : budgetOfEffort[effort];
  return { thinkingBudget: moved(wanted, range) };
}

/** Returns the effort nearest to the one that is asked for, if any is; one that is not the same is reported. `usual`: those of a model that names none. */
function effortFor(
  { reasoning, traits, drop }: ReasoningOptions,
  usual: readonly Effort[],
): Effort | undefined {
  const wanted = effortOf(reasoning);
  if (wanted === undefined) return undefined;
  const effort = nearestEffort(wanted, allowedOf(traits, usual)) ?? 'low';
  if (effort !== wanted) drop(spelledBy(reasoning));
  return effort;
}

/** Returns the path of the setting that cannot be fulfilled: the whole setting if the client switches reasoning off. */
function spelledBy({ mode, effort }: Reasoning): string {
  if (mode === 'off') return 'settings.reasoning';
  return `settings.reasoning.${effort === undefined ? 'budget' : 'effort'}`;
}

/** Returns the efforts of the model's traits, otherwise those of its kind. */
function allowedOf(traits: ModelTraits, usual: readonly Effort[]): readonly Effort[] {
  const named = efforts.filter((effort) => traits.efforts?.includes(effort));
  const possible = traits.reasoning === 'budget' ? named : named.filter((effort) => levels.includes(effort));
  return possible.length === 0 ? usual : possible;
}

/** First characters of a sealed proof in base64. */
const sealedStart = 'Z3cxL';

/** Accepted by the provider in place of a signature it never gave, so that history of another vendor can be continued. */
export const placeholderSignature = 'skip_thought_signature_validator';

/** Returns a `thoughtSignature` as a proof; one that the gateway sealed names the vendor that made it. */
export function readSignature(value: string): Proof {
  if (value.startsWith(sealedStart)) {
    const opened = unsealProof(Buffer.from(value, 'base64').toString());
    if (opened !== undefined) return opened.proof;
  }
  return { format: formatName, kind: 'signature', value };
}

/** Returns a proof as a `thoughtSignature`: base64 is what the field holds, also for another vendor's proof in its container. */
export function writeSignature(proof: Proof): string {
  return proof.format === formatName ? proof.value : Buffer.from(sealProof(proof)).toString('base64');
}
