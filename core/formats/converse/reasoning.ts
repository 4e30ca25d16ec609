import { effortFrom, type Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalNumber, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { askForThinking } from '../_shared/thinking.ts';
import { innerObject, keepInner } from './wire.ts';
import { setOf } from '../_shared/extra.ts';

type Writable = { -readonly [K in keyof Reasoning]: Reasoning[K] };

const place = 'additionalModelRequestFields.thinking';
const thinkingFields = setOf('type budget_tokens display');
const modes: Readonly<Record<string, Reasoning['mode']>> = {
  enabled: 'on',
  adaptive: 'adaptive',
  disabled: 'off',
};

/**
 * What the model's own field `thinking` and `outputConfig.effort` ask for. Models that ask in other fields are asked in theirs: those pass.
 * What is not understood goes to `rest`, and what was is remembered there as it was written.
 */
export function decodeReasoning(body: JsonObject, rest: MutableObject): Reasoning | undefined {
  const fields = optionalObject(body.additionalModelRequestFields, 'additionalModelRequestFields');
  const thinking = optionalObject(fields?.thinking, place);
  const effort = optionalString(
    optionalObject(body.outputConfig, 'outputConfig')?.effort,
    'outputConfig.effort',
  );
  const reasoning: Writable = {};
  if (thinking !== undefined) readThinking(thinking, reasoning, rest);
  const known = effortFrom(effort);
  if (known !== undefined) reasoning.effort = known;
  else if (given(effort)) rest['outputConfig.effort'] = effort;
  for (const _ in reasoning) {
    rest.$reasoning = {
      asked: JSON.stringify(reasoning),
      ...(thinking === undefined ? {} : { thinking }),
      ...(known === undefined ? {} : { effort }),
    };
    return reasoning;
  }
  return undefined;
}

function readThinking(thinking: JsonObject, reasoning: Writable, rest: MutableObject): void {
  const type = requiredString(thinking.type, `${place}.type`);
  const mode = modes[type];
  const budget = optionalNumber(thinking.budget_tokens, `${place}.budget_tokens`, { integer: true });
  const display = optionalString(thinking.display, `${place}.display`);
  keepInner(rest, place, thinking, thinkingFields);
  if (mode === undefined) rest[`${place}.type`] = type;
  else reasoning.mode = mode;
  if (budget !== undefined) reasoning.budget = budget;
  if (display === undefined) return;
  reasoning.show = display !== 'omitted';
  reasoning.display = display;
}

/** How a wish for reasoning is asked, and what bounds it. */
interface Asking {
  readonly traits: ModelTraits;
  readonly maxOutput: number | undefined;
  readonly lose: (path: string) => void;
}

/**
 * Writes a wish for reasoning in the words that the model takes: `effort` in `outputConfig`, `level` as a `reasoningConfig`, else a
 * `thinking` object. Every other field of the model's is left as it is.
 */
export function writeReasoning(
  body: MutableObject,
  reasoning: Reasoning,
  kept: JsonObject,
  asking: Asking,
): void {
  const { traits, lose } = asking;
  const { $reasoning: written } = kept;
  if (isWritten(written, reasoning)) {
    if (written.thinking !== undefined) fieldsOf(body).thinking = { ...(written.thinking as JsonObject) };
    if (written.effort !== undefined) innerObject(body, 'outputConfig').effort = written.effort;
    return;
  }
  if (traits.refuses?.includes('reasoning') === true) return lose('settings.reasoning');
  if (reasoning.mode === 'between-tools') {
    lose('settings.reasoning.mode');
    if (reasoning.display !== undefined) lose('settings.reasoning.display');
    return;
  }
  const plan = askForThinking(reasoning, {
    ...asking,
    traits: style(traits),
  });
  const thinks = plan.thinking !== undefined && plan.thinking.type !== 'disabled';
  switch (traits.reasoning) {
    case 'effort':
      if (plan.effort !== undefined) innerObject(body, 'outputConfig').effort = plan.effort;
      if (!thinks) lose('settings.reasoning');
      return;
    case 'level':
      fieldsOf(body).reasoningConfig = thinks
        ? { type: 'enabled', maxReasoningEffort: plan.effort ?? 'medium' }
        : { type: 'disabled' };
      return;
    default:
      if (plan.thinking !== undefined) fieldsOf(body).thinking = plan.thinking;
      if (plan.effort !== undefined) innerObject(body, 'outputConfig').effort = plan.effort;
      if (plan.maxOutput !== undefined) innerObject(body, 'inferenceConfig').maxTokens = plan.maxOutput;
      if (thinks) makeRoom(body, reasoning, lose);
  }
}

/** Takes out what models that take `thinking` refuse beside it, or the thinking itself where the history forbids it. */
function makeRoom(body: MutableObject, reasoning: Reasoning, lose: (path: string) => void): void {
  const fields = fieldsOf(body);
  if (historyForbidsThinking(body, fields.thinking)) {
    delete fields.thinking;
    if (Object.keys(fields).length === 0) delete body.additionalModelRequestFields;
    const { effort, budget, display, show } = reasoning;
    const measured = effort !== undefined || budget !== undefined;
    lose(measured ? 'settings.reasoning.effort' : 'settings.reasoning');
    if (display !== undefined) lose('settings.reasoning.display');
    else if (show !== undefined) lose('settings.reasoning.show');
    return;
  }
  const config = innerObject(body, 'inferenceConfig');
  const remove = (object: MutableObject, field: string, path: string): void => {
    delete object[field];
    lose(path);
  };
  if (typeof config.temperature === 'number' && config.temperature !== 1)
    remove(config, 'temperature', 'settings.temperature');
  if (typeof config.topP === 'number' && config.topP < 0.95) remove(config, 'topP', 'settings.topP');
  if (typeof fields.top_k === 'number') remove(fields, 'top_k', 'settings.topK');
  if (Object.keys(config).length === 0) delete body.inferenceConfig;
  const tools = isObject(body.toolConfig) ? body.toolConfig : undefined;
  const choice = isObject(tools?.toolChoice) ? tools.toolChoice : {};
  if (choice.any === undefined && choice.tool === undefined) return;
  body.toolConfig = { ...tools, toolChoice: { auto: {} } };
  lose('tool_choice');
}

/** A turn that ends with the model's words, or a tool loop whose turn does not begin with reasoning that the provider would know again. */
function historyForbidsThinking(body: JsonObject, thinking: JsonObject[string]): boolean {
  const turns = (Array.isArray(body.messages) ? (body.messages as readonly JsonObject[]) : []).filter(
    ({ role }) => role !== 'system',
  );
  const last = turns.at(-1);
  if (last?.role === 'assistant') return true;
  if (!isObject(thinking) || thinking.type !== 'enabled' || !has(last, 'toolResult')) return false;
  const before = turns.at(-2);
  return has(before, 'toolUse') && blocksOf(before)[0]?.reasoningContent === undefined;
}

function has(message: JsonObject | undefined, key: string): boolean {
  return blocksOf(message).some((block) => block[key] !== undefined);
}

function blocksOf(message: JsonObject | undefined): readonly JsonObject[] {
  return Array.isArray(message?.content) ? (message.content as readonly JsonObject[]) : [];
}

/** Efforts and levels are asked for as an effort is, and spelled otherwise. */
function style(traits: ModelTraits): ModelTraits {
  return traits.reasoning === 'effort' || traits.reasoning === 'level'
    ? { ...traits, reasoning: 'adaptive' }
    : traits;
}

function fieldsOf(body: MutableObject): MutableObject {
  return innerObject(body, 'additionalModelRequestFields');
}

/** True when the request asks for reasoning exactly as the client of this format wrote it. */
function isWritten(written: JsonObject[string], reasoning: Reasoning): written is JsonObject {
  return (
    typeof written === 'object' &&
    written !== null &&
    'asked' in written &&
    written.asked === JSON.stringify(reasoning)
  );
}
