import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { listOf, objectsOf, textOf } from '../_shared/fields.ts';

/** Puts messages in an order and a shape that the model takes: {@link ModelTraits.parallelHistory}, {@link ModelTraits.alternates}, {@link ModelTraits.textParts}. */
export function orderedTurns(wire: JsonObject[], traits: ModelTraits): JsonObject[] {
  const split = traits.parallelHistory === false ? splitCalls(wire) : wire;
  const joint = traits.alternates === true ? joinSpeakers(split) : split;
  return traits.textParts === false ? joint.map((message) => withOneText(message)) : joint;
}

/** Returns a message whose list of texts is one text. */
function withOneText(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content) || !isText(message)) return message;
  return {
    ...message,
    content: objectsOf(content)
      .map(({ text }) => textOf(text))
      .join('\n'),
  };
}

/** Returns a turn for each tool call, followed by its result. Other content of the original turn stays with the first call. */
function splitCalls(wire: readonly JsonObject[]): JsonObject[] {
  const ordered: JsonObject[] = [];
  for (let index = 0; index < wire.length; index += 1) {
    const message = wire[index] ?? {};
    const calls = message.role === 'assistant' ? objectsOf(message.tool_calls) : [];
    if (calls.length < 2) {
      ordered.push(message);
      continue;
    }
    const results = new Map<JsonValue | undefined, JsonObject[]>();
    while (wire[index + 1]?.role === 'tool') {
      index += 1;
      const result = wire[index] ?? {};
      const id = result.tool_call_id;
      const known = results.get(id);
      if (known === undefined) results.set(id, [result]);
      else known.push(result);
    }
    for (const [position, call] of calls.entries()) {
      ordered.push(
        position === 0
          ? { ...message, tool_calls: [call] }
          : { role: 'assistant', content: null, tool_calls: [call] },
      );
      for (const result of results.get(call.id) ?? []) ordered.push(result);
      results.delete(call.id);
    }
    for (const rest of results.values()) for (const result of rest) ordered.push(result);
  }
  return ordered;
}

/** Joins adjacent turns of the user, and adjacent turns of the assistant without calls. Text after a tool result is joined with it. */
function joinSpeakers(wire: readonly JsonObject[]): JsonObject[] {
  const groups: JsonObject[][] = [];
  for (const message of wire) {
    const group = groups.at(-1);
    const last = group?.[0];
    if (group !== undefined && last !== undefined && canJoin(last, message)) group.push(message);
    else groups.push([message]);
  }
  return groups.map((group) =>
    group.length < 2 ? (group[0] ?? {}) : { ...group[0], content: joined(group) },
  );
}

function isText({ content }: JsonObject): boolean {
  return typeof content === 'string' || objectsOf(content).every(({ type }) => type === 'text');
}

function canJoin(before: JsonObject, after: JsonObject): boolean {
  if (before.role === 'tool' && after.role === 'user') return isText(before) && isText(after);
  if (before.role !== after.role) return false;
  if (after.role === 'user') return true;
  return after.role === 'assistant' && before.tool_calls === undefined && after.tool_calls === undefined;
}

function joined(group: readonly JsonObject[]): JsonValue {
  const contents = group.map(({ content }) => content);
  if (contents.every((content) => typeof content === 'string')) return contents.join('\n\n');
  return contents.flatMap((content) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content),
  );
}
