/** `thinking` and `output_config.effort`, in both directions. */
import { isDeepStrictEqual } from 'node:util';
import { wrongValue } from '../../sdk/errors.ts';
import { effortFrom, type Reasoning } from '../../model/reasoning.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { optionalObject, optionalString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { defined } from '../_shared/fields.ts';
import type { ReasoningDraft } from '../_shared/reasoning.ts';
import { takesOff } from '../../model/thinks.ts';
import { readThinking, thinkingModes } from '../_shared/thinking/read.ts';
import type { ThinkingWords } from '../_shared/thinking/room.ts';
import { settingRows } from './settings.ts';

const modes = { ...thinkingModes, between_tools: 'between-tools' } as const;

/** Neutral mode → `thinking.type`. */
const typeOfMode: Readonly<Record<NonNullable<Reasoning['mode']>, string>> = {
  on: 'enabled',
  adaptive: 'adaptive',
  off: 'disabled',
  'between-tools': 'between_tools',
};

/**
 * Decodes `thinking` and `output_config.effort`. Members that only this format has go to `left`. A budget below 1024 is not refused here,
 * because it is invalid only on channels of this format; others get the nearest effort.
 */
export function decodeReasoning(body: JsonObject, left: Leftovers): Reasoning | undefined {
  const reasoning: ReasoningDraft = {};
  const thinking = optionalObject(body.thinking, 'thinking');
  readThinking(thinking, 'thinking', { modes, leastBudget: 0 }, reasoning, left);
  readEffort(optionalObject(body.output_config, 'output_config')?.effort, reasoning, left);
  if (Object.keys(reasoning).length === 0) return undefined;
  left.put('$reasoning', { ...reasoning } as JsonObject);
  return reasoning;
}

function readEffort(value: JsonValue | undefined, reasoning: ReasoningDraft, left: Leftovers): void {
  const word = optionalString(value, 'output_config.effort');
  if (word === undefined) return;
  const effort = effortFrom(word);
  if (effort === undefined) {
    left.put('output_config.effort', word);
    return;
  }
  reasoning.effort = effort;
  if (effort !== word) left.put('$effort', word);
}

/** Returns true when the request for reasoning is unchanged from the client, and the model supports it. */
export function isNative(reasoning: Reasoning, kept: JsonObject, traits: ModelTraits): boolean {
  const { mode, effort, budget } = reasoning;
  if (!isDeepStrictEqual(kept.$reasoning, reasoning)) return false;
  if (mode === 'off' && !takesOff(traits)) return false;
  switch (traits.reasoning) {
    case 'none':
      return false;
    case 'thinking':
      return mode !== 'adaptive' && (mode !== 'off' || effort === undefined);
    case 'adaptive':
      return mode !== 'on';
    case 'budget':
      return mode !== 'adaptive' && hasBudget(mode, budget) && takesEffort(reasoning, traits);
    default:
      return hasBudget(mode, budget);
  }
}

const hasBudget = (mode: Reasoning['mode'], budget: number | undefined): boolean =>
  mode !== 'on' || budget !== undefined;

/** Models that are given a budget take an effort beside it only where efforts are stated. */
function takesEffort({ mode, effort }: Reasoning, { efforts }: ModelTraits): boolean {
  return effort === undefined || (mode !== undefined && efforts !== undefined);
}

/** Returns the client's own words, written back. Throws 400 for a budget that every provider of this format refuses. */
export function nativeThinking(
  reasoning: Reasoning,
  kept: JsonObject,
): { readonly thinking?: JsonObject; readonly effort?: string } {
  const { mode, budget, display, effort } = reasoning;
  if (mode === 'on' && budget !== undefined && budget < 1024) {
    throw wrongValue('thinking.budget_tokens', 'at least 1024');
  }
  const type = mode === undefined ? undefined : typeOfMode[mode];
  const thinking: JsonObject = defined({ type, budget_tokens: budget, display });
  return {
    ...(Object.keys(thinking).length === 0 ? {} : { thinking }),
    ...defined({ effort: typeof kept.$effort === 'string' ? kept.$effort : effort }),
  };
}

/** Fields of a body of this format that affect thinking, or depend on it. */
export const thinkingWords: ThinkingWords = {
  rows: settingRows,
  thinkingIn: ({ thinking }) => thinking,
  isResult: ({ type }) => type === 'tool_result',
  isCall: ({ type }) => type === 'tool_use',
  isThought: ({ type }) => type === 'thinking' || type === 'redacted_thinking',
};
