import { isJson, valueAt, type Json } from './checks.ts';

const efforts = [
  'reasoning_effort',
  'reasoning.effort',
  'output_config.effort',
  'generationConfig.thinkingConfig.thinkingLevel',
  'additionalModelRequestFields.reasoning_effort',
  'additionalModelRequestFields.reasoning.effort',
  'additionalModelRequestFields.reasoningConfig.maxReasoningEffort',
  'additionalModelRequestFields.output_config.effort',
];
const budgets = [
  'thinking.budget_tokens',
  'thinking.token_budget',
  'thinking_budget',
  'reasoning.max_tokens',
  'generationConfig.thinkingConfig.thinkingBudget',
  'additionalModelRequestFields.thinking.budget_tokens',
];
const switches = [
  'thinking.type',
  'enable_thinking',
  'think',
  'reasoning.enabled',
  'chat_template_kwargs.enable_thinking',
  'chat_template_kwargs.thinking',
  'additionalModelRequestFields.thinking.type',
  'additionalModelRequestFields.reasoningConfig.type',
  'disable_reasoning',
];

const off: ReadonlySet<unknown> = new Set<unknown>(['none', 'disabled', false, 0]);
/** Lowest settings of models whose reasoning cannot be disabled. */
const low: ReadonlySet<unknown> = new Set<unknown>(['minimal', 'MINIMAL', 'low', 'LOW', 128]);
const high: ReadonlySet<unknown> = new Set<unknown>(['high', 'HIGH', 'xhigh', 'max']);

/** Settings of a request that control reasoning, from any field. */
interface ReasoningControls {
  readonly effort: unknown;
  readonly budget: unknown;
  readonly switched: unknown;
}

function reasoningControlsIn(body: Json): ReasoningControls {
  const first = (paths: readonly string[]): unknown =>
    paths.map((path) => valueAt(body, path)).find((value) => value !== undefined && value !== null);
  const think = body['think'];
  return {
    effort: first(efforts) ?? (typeof think === 'string' ? think : undefined),
    budget: first(budgets),
    switched:
      body['disable_reasoning'] === true
        ? false
        : first(switches.filter((path) => path !== 'disable_reasoning')),
  };
}

/**
 * True where a body in a provider's words asks for much thought: a high level (`medium` where the client wished for a budget), a budget, or
 * at least that there be some where there is a switch alone.
 */
export function asksForMuch(body: Json, control: string, byDefault: boolean, isBudget: boolean): boolean {
  const { effort, budget, switched } = reasoningControlsIn(body);
  const isOff = off.has(effort) || off.has(budget) || off.has(switched);
  if (isOff) return false;
  if (control === 'switch') return byDefault || switched !== undefined || effort !== undefined;
  if (
    isBudget &&
    [effort, switched].some((value) => value === 'medium' || value === 'MEDIUM' || value === 'adaptive')
  )
    return true;
  return (
    high.has(effort) ||
    (typeof budget === 'number' && budget !== 0) ||
    (effort === undefined && switched === 'adaptive')
  );
}

/** True for a body that requests reasoning of any amount. */
export function asksForSome(body: Json, byDefault: boolean): boolean {
  const { effort, budget, switched } = reasoningControlsIn(body);
  if ([effort, budget, switched].some((value) => off.has(value))) return false;
  return byDefault || [effort, budget, switched].some((value) => value !== undefined);
}

/** True for a body that requests no reasoning, or the model's minimum. Also true without a setting when the model does not reason by default. */
export function asksForNone(body: Json, byDefault: boolean, stops: boolean): boolean {
  const controls = reasoningControlsIn(body);
  const values = [controls.effort, controls.budget, controls.switched].filter((value) => value !== undefined);
  if (values.some((value) => off.has(value))) return true;
  if (!stops) return values.length === 0 || values.some((value) => low.has(value) || isJson(value));
  return !byDefault && values.length === 0;
}
