/** Edits a messages request that passes through as bytes. */
import type { Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given } from '../_shared/check.ts';
import type { Edits } from '../../sdk/format.ts';
import { encodeThinking } from '../_shared/thinking/index.ts';
import { historyForbidsThinking, makeRoomForThinking, thinks } from '../_shared/thinking/room.ts';
import { thinkingWords } from './reasoning.ts';

type Drop = (path: string) => void;

/**
 * Returns the client's body with the edits. If an edit switches thinking on, removes settings that providers refuse beside it, and keeps
 * thinking off for a turn whose history forbids it. Reports these changes.
 */
export function patch(
  body: JsonObject,
  edits: Edits,
  traits: ModelTraits,
  counting: boolean,
  drop: Drop = () => {},
): JsonObject {
  const next: MutableObject = { ...body };
  if (edits.model !== undefined) next.model = edits.model;
  const { reasoning, maxOutput } = edits.settings ?? {};
  if (maxOutput !== undefined && !counting) next.max_tokens = maxOutput;
  if (reasoning !== undefined) patchReasoning(next, reasoning, traits, counting, drop);
  return next;
}

function patchReasoning(
  next: MutableObject,
  reasoning: Reasoning,
  traits: ModelTraits,
  counting: boolean,
  drop: Drop,
): void {
  const adaptive = isObject(next.thinking) && next.thinking.type === 'adaptive';
  const plan = encodeThinking(reasoning, {
    traits: traits.reasoning === undefined && adaptive ? { ...traits, reasoning: 'adaptive' } : traits,
    maxOutput: typeof next.max_tokens === 'number' ? next.max_tokens : undefined,
    drop,
  });
  delete next.thinking;
  setEffort(next, plan.effort);
  if (plan.thinking !== undefined) next.thinking = plan.thinking;
  if (!thinks(next.thinking)) return;
  if (historyForbidsThinking(next, thinkingWords)) {
    delete next.thinking;
    drop('settings.reasoning');
    return;
  }
  if (plan.maxOutput !== undefined && !counting) next.max_tokens = plan.maxOutput;
  makeRoomForThinking(next, thinkingWords, drop);
}

function setEffort(next: MutableObject, effort: string | undefined): void {
  const { effort: _, ...rest } = isObject(next.output_config) ? next.output_config : {};
  const config = effort === undefined ? rest : { ...rest, effort };
  if (Object.keys(config).length > 0) next.output_config = config;
  else delete next.output_config;
}

/**
 * Returns the body with the required budget of `thinking` of type `enabled`, if the client omitted it: the budget of the suffix
 * `-thinking`. If the output limit is too low for a budget, thinking is switched off and reported. Models with only a switch need no
 * budget.
 */
export function withBudget(body: JsonObject, traits: ModelTraits, drop: Drop): JsonObject {
  const { thinking, max_tokens: limit } = body;
  if (traits.reasoning === 'thinking') return body;
  if (!isObject(thinking) || thinking.type !== 'enabled' || given(thinking.budget_tokens)) return body;
  const { type: _type, budget_tokens: _budget, ...rest } = thinking;
  const { thinking: requested } = encodeThinking(
    { mode: 'on' },
    { traits, maxOutput: typeof limit === 'number' ? limit : undefined, drop },
  );
  const { thinking: _thinking, ...next } = body;
  return requested === undefined ? next : { ...next, thinking: { ...requested, ...rest } };
}

/** Returns the body with functions without `type`, for a model that refuses it. */
export function withPlainTools(body: JsonObject, { toolTypes }: ModelTraits): JsonObject {
  const { tools } = body;
  if (toolTypes !== false || !Array.isArray(tools)) return body;
  const isTyped = (tool: JsonValue): tool is JsonObject => isObject(tool) && tool.type === 'custom';
  if (!tools.some(isTyped)) return body;
  return { ...body, tools: tools.map((tool: JsonValue) => (isTyped(tool) ? untyped(tool) : tool)) };
}

function untyped({ type: _type, ...tool }: JsonObject): JsonObject {
  return tool;
}
