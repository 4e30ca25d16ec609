/**
 * Encodes reasoning as `thinking` and `effort` of Messages, which Converse carries too: token budget, adaptive, on or off, as the model
 * accepts.
 */
import {
  budgetOfEffort,
  effortOfBudget,
  efforts,
  type Effort,
  type Reasoning,
} from '../../../model/reasoning.ts';
import { takesOff } from '../../../model/thinks.ts';
import { defined } from '../fields.ts';
import { nearestEffort } from '../reasoning.ts';
import type { JsonObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';

/** The output limit where neither client nor model has one: the format requires a number. */
export const defaultMaxTokens = 8192;
const leastBudget = 1024;

/** Encoded reasoning settings. */
export interface Thinking {
  readonly thinking?: JsonObject;
  /** For `output_config.effort`. */
  readonly effort?: string;
  /** The output limit that the budget needs; absent when the ordinary one will do. */
  readonly maxOutput?: number;
}

/** Limits within which reasoning settings are encoded. */
export interface Room {
  readonly traits: ModelTraits;
  /** The client's output limit; undefined when it gave none. */
  readonly maxOutput: number | undefined;
  /** Reports a neutral path: `settings.reasoning.effort`. */
  readonly drop: (path: string) => void;
}

/** Encodes reasoning settings as the model accepts them: a token budget, `adaptive` with an effort, or on and off with an effort. */
export function encodeThinking(reasoning: Reasoning, room: Room): Thinking {
  const { traits } = room;
  if (isOff(reasoning)) {
    if (reasoning.effort !== undefined && reasoning.effort !== 'none') room.drop('settings.reasoning.effort');
    return switchedOff(room);
  }
  if (traits.reasoning === 'none') {
    room.drop('settings.reasoning');
    return {};
  }
  if (!asks(reasoning)) {
    if (reasoning.show !== undefined) room.drop('settings.reasoning.show');
    return {};
  }
  if (reasoning.mode === 'between-tools') return { thinking: { type: 'between_tools' } };
  const style = traits.reasoning ?? reasoning.mode;
  if (style === 'adaptive' || style === 'thinking') return leveled(style, reasoning, room);
  return enabled(reasoning, room);
}

/** Turns thinking off. A model that refuses that gets the lowest effort, or nothing where it has no efforts. */
function switchedOff({ traits, drop }: Room): Thinking {
  if (traits.reasoning === 'none') return {};
  if (traits.reasoning !== 'adaptive' && !takesOff(traits)) {
    drop('settings.reasoning.mode');
    return {};
  }
  if (traits.reasoning !== 'adaptive' || (traits.efforts?.includes('none') ?? true))
    return { thinking: { type: 'disabled' } };
  drop('settings.reasoning.mode');
  return { thinking: { type: 'adaptive' }, effort: nearest('low', traits.efforts) };
}

function isOff({ mode, effort, budget }: Reasoning): boolean {
  if (mode !== undefined) return mode === 'off';
  return effort === 'none' || (effort === undefined && budget === 0);
}

function asks({ mode, effort, budget }: Reasoning): boolean {
  return mode !== undefined || effort !== undefined || budget !== undefined;
}

/** Returns thinking with an effort. */
function leveled(style: 'adaptive' | 'thinking', reasoning: Reasoning, room: Room): Thinking {
  const wanted = effortWanted(reasoning);
  const effort = wanted === undefined ? undefined : nearest(wanted, room.traits.efforts);
  if (effort !== wanted) room.drop('settings.reasoning.effort');
  return {
    thinking: { type: style === 'adaptive' ? style : 'enabled', ...displayOf(reasoning) },
    ...defined({ effort }),
  };
}

function effortWanted({ effort, budget }: Reasoning): Effort | undefined {
  return effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
}

/** Returns the effort itself where the model has it, else the nearest lower one, else the lowest. The format knows none below `low`. */
function nearest(wanted: Effort, allowed: readonly string[] = efforts): string {
  const known = efforts.slice(efforts.indexOf('low')).filter((effort) => allowed.includes(effort));
  return nearestEffort(wanted, known) ?? 'low';
}

function enabled(reasoning: Reasoning, room: Room): Thinking {
  const { traits, maxOutput, drop } = room;
  const limit = maxOutput ?? traits.outputLimit ?? defaultMaxTokens;
  const wanted = budgetWanted(reasoning, limit);
  // With no limit from anyone the answer keeps its ordinary room, and the budget comes on top.
  const open = maxOutput === undefined && traits.outputLimit === undefined && wanted >= limit;
  if (!open && limit <= leastBudget) {
    drop('settings.reasoning');
    return {};
  }
  const budget = Math.max(leastBudget, open ? wanted : Math.min(wanted, limit - 1));
  if (reasoning.budget !== undefined && reasoning.budget < 0) drop('settings.reasoning.budget');
  // The effort is carried by the budget where the budget converts back to the same effort.
  const effort = effortWanted(reasoning);
  if (effort !== undefined && effortOfBudget(budget) !== effort) drop('settings.reasoning.effort');
  return {
    thinking: { type: 'enabled', budget_tokens: budget, ...displayOf(reasoning) },
    ...(open ? { maxOutput: budget + limit } : {}),
  };
}

/** Returns the requested reasoning budget in tokens; 80 % of the output limit when the client left it to the model. */
function budgetWanted({ mode, effort, budget }: Reasoning, limit: number): number {
  if (budget !== undefined && budget > 0) return budget;
  if (effort !== undefined) return budgetOfEffort[effort];
  return mode === 'adaptive' ? budgetOfEffort.high : Math.floor(limit * 0.8);
}

function displayOf({ show, display: word }: Reasoning): { readonly display?: string } {
  if (show === undefined) return {};
  if (!show) return { display: 'omitted' };
  return { display: word === 'updates' ? word : 'summarized' };
}
