/**
 * Chooses the reasoning effort that a model accepts: nearest allowed level, conversion between effort and token budget, and reports of what
 * is lost.
 */
import {
  budgetOfEffort,
  effortOfBudget,
  efforts,
  type Effort,
  type Reasoning,
} from '../../model/reasoning.ts';
import type { ModelTraits } from '../../model/traits.ts';

/** Reasoning settings while they are being read. */
export type ReasoningDraft = { -readonly [Member in keyof Reasoning]: Reasoning[Member] };

/**
 * Returns the effort itself where it is allowed, else the nearest lower allowed one, else the lowest; undefined where none is allowed. An effort other
 * than `none` becomes `none` only where nothing else is allowed.
 */
export function nearestEffort(wanted: Effort, allowed: readonly string[]): Effort | undefined {
  const all = efforts.filter((effort) => allowed.includes(effort));
  const thinking = wanted === 'none' ? all : all.filter((effort) => effort !== 'none');
  const taken = thinking.length === 0 ? all : thinking;
  return taken.findLast((effort) => efforts.indexOf(effort) <= efforts.indexOf(wanted)) ?? taken[0];
}

/** Returns the effort that the settings request by mode, effort or budget; undefined when they request none. */
export function effortOf({ mode, effort, budget }: Reasoning): Effort | undefined {
  if (mode === 'off') return 'none';
  return effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
}

type Drop = (path: string) => void;

/** Reports a budget that is not sent, unless the effort that is sent stands for the same budget. */
export function dropBudget(wanted: Reasoning, effort: Effort | undefined, drop: Drop): void {
  if (wanted.budget === undefined || wanted.mode === 'off') return;
  if (effort === undefined || (wanted.effort !== undefined && wanted.budget !== budgetOfEffort[effort]))
    drop('settings.reasoning.budget');
}

/** Returns the nearest effort that the model takes. Undefined when it takes none. */
export function clampEffort(effort: Effort, traits: ModelTraits, drop: Drop): string | undefined {
  if (traits.efforts === undefined || traits.efforts.includes(effort)) return effort;
  drop('settings.reasoning.effort');
  return traits.effortAs?.[effort] ?? nearestEffort(effort, traits.efforts);
}
