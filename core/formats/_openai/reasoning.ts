import { budgetOfEffort, type Effort, type Reasoning } from '../../model/reasoning.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { nearestEffort } from '../_shared/reasoning.ts';

type Lose = (path: string) => void;

/** An effort stands for its budget; it is only a loss where the two say different things. */
export function loseBudget(wanted: Reasoning, effort: Effort | undefined, lose: Lose): void {
  if (wanted.budget === undefined || wanted.mode === 'off') return;
  if (effort === undefined || (wanted.effort !== undefined && wanted.budget !== budgetOfEffort[effort]))
    lose('settings.reasoning.budget');
}

/** The nearest effort that the model takes. Undefined when it takes none. */
export function clampEffort(effort: Effort, traits: ModelTraits, lose: Lose): string | undefined {
  if (traits.efforts === undefined || traits.efforts.includes(effort)) return effort;
  lose('settings.reasoning.effort');
  return nearestEffort(effort, traits.efforts);
}
