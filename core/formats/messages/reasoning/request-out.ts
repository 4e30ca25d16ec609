import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { MutableObject } from '../../_shared/settings.ts';

/** True when the body asks for thinking of the kind that forbids sampling settings and forced tools. */
export function thinks(body: JsonObject): boolean {
  const type = isObject(body.thinking) ? body.thinking.type : undefined;
  return type === 'enabled' || type === 'adaptive';
}

/** Takes out what providers refuse beside thinking: sampling that is not at rest, and a forced tool. */
export function makeRoomForThinking(body: MutableObject, lose: (path: string) => void): void {
  const remove = (field: string, path: string): void => {
    delete body[field];
    lose(path);
  };
  if (typeof body.temperature === 'number' && body.temperature !== 1)
    remove('temperature', 'settings.temperature');
  if (typeof body.top_p === 'number' && body.top_p < 0.95) remove('top_p', 'settings.topP');
  if (typeof body.top_k === 'number') remove('top_k', 'settings.topK');
  const choice = body.tool_choice;
  if (isObject(choice) && (choice.type === 'any' || choice.type === 'tool')) {
    const { name: _, ...rest } = choice;
    body.tool_choice = { ...rest, type: 'auto' };
    lose('tool_choice');
  }
}

/**
 * True when the history forbids thinking for this turn: it ends with words put into the model's mouth, or (for `enabled`) inside a tool
 * loop whose assistant turn does not begin with a thinking block that the provider would know again.
 */
export function historyForbidsThinking(body: JsonObject): boolean {
  const turns = (Array.isArray(body.messages) ? (body.messages as readonly JsonValue[]) : []).filter(
    (message): message is JsonObject => isObject(message) && message.role !== 'system',
  );
  const last = turns.at(-1);
  if (last?.role === 'assistant') return true;
  if (!isObject(body.thinking) || body.thinking.type !== 'enabled' || !has(last, 'tool_result')) return false;
  const before = turns.at(-2);
  return has(before, 'tool_use') && !/^(redacted_)?thinking$/.test(firstType(before));
}

function has(message: JsonObject | undefined, type: string): boolean {
  return blocksOf(message).some((block) => isObject(block) && block.type === type);
}

function firstType(message: JsonObject | undefined): string {
  const first = blocksOf(message)[0];
  return isObject(first) && typeof first.type === 'string' ? first.type : '';
}

function blocksOf(message: JsonObject | undefined): readonly JsonValue[] {
  const content = message?.content;
  return Array.isArray(content) ? (content as readonly JsonValue[]) : [];
}
