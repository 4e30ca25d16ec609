import {
  budgetOfEffort,
  effortOfBudget,
  efforts,
  type Effort,
  type Reasoning,
} from '../../model/reasoning.ts';
import type { ModelTraits } from '../../model/traits.ts';

/** A wish for reasoning that is being read. */
export type ReasoningDraft = { -readonly [Member in keyof Reasoning]: Reasoning[Member] };

/**
 * The effort itself where it is among the allowed, else the nearest lower one that is, else the lowest; undefined where none is. A wish to
 * think is never one not to think, as long as any other effort is allowed.
 */
export function nearestEffort(wanted: Effort, allowed: readonly string[]): Effort | undefined {
  const all = efforts.filter((effort) => allowed.includes(effort));
  const thinking = wanted === 'none' ? all : all.filter((effort) => effort !== 'none');
  const taken = thinking.length === 0 ? all : thinking;
  return taken.findLast((effort) => efforts.indexOf(effort) <= efforts.indexOf(wanted)) ?? taken[0];
}

/** The effort that a wish asks for in any words; undefined where it gives no measure. */
export function effortOf({ mode, effort, budget }: Reasoning): Effort | undefined {
  if (mode === 'off') return 'none';
  return effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
}

type Drop = (path: string) => void;

/** An effort stands for its budget; it is only a loss where the two say different things. */
export function dropBudget(wanted: Reasoning, effort: Effort | undefined, drop: Drop): void {
  if (wanted.budget === undefined || wanted.mode === 'off') return;
  if (effort === undefined || (wanted.effort !== undefined && wanted.budget !== budgetOfEffort[effort]))
    drop('settings.reasoning.budget');
}

/** The nearest effort that the model takes. Undefined when it takes none. */
export function clampEffort(effort: Effort, traits: ModelTraits, drop: Drop): string | undefined {
  if (traits.efforts === undefined || traits.efforts.includes(effort)) return effort;
  drop('settings.reasoning.effort');
  return traits.effortAs?.[effort] ?? nearestEffort(effort, traits.efforts);
}
