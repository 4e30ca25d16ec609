import type { Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { Edits } from '../format.ts';
import { askForThinking, historyForbidsThinking, makeRoomForThinking, thinks } from './thinking.ts';

/**
 * The client's body with the edits made. Where an edit turns thinking on, what providers refuse beside it is taken out, and it stays
 * off for a turn whose history forbids it.
 */
export function patch(body: JsonObject, edits: Edits, traits: ModelTraits, counting: boolean): JsonObject {
  const next: MutableObject = { ...body };
  if (edits.model !== undefined) next.model = edits.model;
  const { reasoning, maxOutput } = edits.settings ?? {};
  if (maxOutput !== undefined && !counting) next.max_tokens = maxOutput;
  if (reasoning !== undefined) patchReasoning(next, reasoning, traits, counting);
  return next;
}

function patchReasoning(
  next: MutableObject,
  reasoning: Reasoning,
  traits: ModelTraits,
  counting: boolean,
): void {
  const adaptive = isObject(next.thinking) && next.thinking.type === 'adaptive';
  const plan = askForThinking(reasoning, {
    traits: traits.reasoning === undefined && adaptive ? { ...traits, reasoning: 'adaptive' } : traits,
    maxOutput: typeof next.max_tokens === 'number' ? next.max_tokens : undefined,
    lose: ignore,
  });
  delete next.thinking;
  setEffort(next, plan.effort);
  if (plan.thinking !== undefined) next.thinking = plan.thinking;
  if (thinks(next) && historyForbidsThinking(next)) delete next.thinking;
  if (!thinks(next)) return;
  if (plan.maxOutput !== undefined && !counting) next.max_tokens = plan.maxOutput;
  makeRoomForThinking(next, ignore);
}

function setEffort(next: MutableObject, effort: string | undefined): void {
  const { effort: _, ...rest } = isObject(next.output_config) ? next.output_config : {};
  const config = effort === undefined ? rest : { ...rest, effort };
  if (Object.keys(config).length > 0) next.output_config = config;
  else delete next.output_config;
}

/** A pass-through has nobody to report to: the edit is the operator's wish. */
function ignore(): void {}
