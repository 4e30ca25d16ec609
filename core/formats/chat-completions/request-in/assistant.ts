/** Reads a turn of the model in a chat completions request. */
import type { Block, Message, ReasoningBlock } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import {
  readObjects,
  requiredObject,
  given,
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
} from '../../_shared/check.ts';
import { decodeContent } from './parts.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { extraContentSignature, readDetail, type Detail } from '../reasoning/details.ts';
import { formatName, leftovers } from '../wire.ts';
import { defined, objectsOf, setOf } from '../../_shared/fields.ts';
import { sameJson } from '../../../json/same-json.ts';
import { readArguments } from '../../_openai/calls.ts';

const messageFields = setOf(
  'role content refusal reasoning_content reasoning reasoning_details tool_calls function_call audio',
);
const reasoningMembers = ['reasoning_content', 'reasoning', 'reasoning_details'];
const callFields = setOf('id type function custom');
const signedCallFields = new Set([...callFields, 'extra_content']);
const functionFields = setOf('name arguments');
const customFields = setOf('name input');
const audioFields = setOf('id');

/** Creates an id for the deprecated `function_call`, by which the following `function` message finds it. */
export class FunctionCallIds {
  /** Ids by name. Created only for conversations that have such calls. */
  #last: Map<string, string> | undefined;

  call(name: string, index: number): string {
    const id = `call_function_${index}`;
    (this.#last ??= new Map()).set(name, id);
    return id;
  }

  answer(name: string, index: number): string {
    return this.#last?.get(name) ?? `call_function_${index}`;
  }
}

/** Returns an assistant turn: reasoning, then text and refusal, then calls, whatever the order of the fields. */
export function decodeAssistant(message: JsonObject, index: number, ids: FunctionCallIds): Message {
  const at = `messages[${index}]`;
  const left = leftovers().take(message, messageFields);
  const calls = decodeCalls(message, at, index, ids);
  const content = given(message.content) ? decodeContent(message.content, `${at}.content`) : undefined;
  if (content === undefined && message.content === undefined) left.put('$content', 'absent');
  else if (content !== undefined && !content.plain && content.content.length === 0)
    left.put('$content', 'parts');
  const contentBlocks = [...(content?.content ?? []), ...decodeRefusal(message, at)];
  const reasoning = decodeReasoning(message, at, left, calls, contentBlocks);
  return {
    role: 'assistant',
    content: [...reasoning, ...contentBlocks, ...calls, ...decodeAudio(message, at, left)],
    at,
    ...(content?.plain ? { plain: true } : {}),
    ...left.extra(),
  };
}

function decodeRefusal(message: JsonObject, at: string): readonly Block[] {
  const text = optionalString(message.refusal, `${at}.refusal`);
  return text === undefined ? [] : [{ type: 'refusal', text, at: `${at}.refusal` }];
}

/** Returns the sound of an earlier answer, kept by the provider under an id. */
function decodeAudio(message: JsonObject, at: string, left: Leftovers): readonly Block[] {
  const audio = optionalObject(message.audio, `${at}.audio`);
  if (audio === undefined) return [];
  const id = requiredString(audio.id, `${at}.audio.id`);
  left.take(audio, audioFields, 'audio.');
  return [{ type: 'audio', source: { kind: 'file', id, format: formatName }, at: `${at}.audio` }];
}

function decodeCalls(message: JsonObject, at: string, index: number, ids: FunctionCallIds): Block[] {
  const calls: Block[] = readObjects(message.tool_calls, `${at}.tool_calls`, decodeCall);
  const legacy = optionalObject(message.function_call, `${at}.function_call`);
  if (legacy !== undefined) {
    const path = `${at}.function_call`;
    const name = requiredString(legacy.name, `${path}.name`);
    calls.push({
      type: 'tool-call',
      id: ids.call(name, index),
      name,
      input: readArguments(legacy.arguments, `${path}.arguments`),
      at: path,
    });
  }
  return calls;
}

function decodeCall(call: JsonObject, at: string): Block {
  const type = optionalString(call.type, `${at}.type`) ?? 'function';
  if (type !== 'function' && type !== 'custom') {
    return {
      type: 'opaque',
      format: formatName,
      value: call,
      at,
      extra: { [formatName]: { $in: 'tool_calls' } },
    };
  }
  const left = leftovers();
  const proof = extraContentSignature(call);
  if (proof !== undefined && sameJson(call.extra_content, { google: { thought_signature: proof.value } })) {
    left.take(call, signedCallFields).put('$extra_content', call.extra_content ?? null);
  } else left.take(call, callFields);
  const id = requiredString(call.id, `${at}.id`);
  const inner = requiredObject(call[type], `${at}.${type}`);
  const name = requiredString(inner.name, `${at}.${type}.name`);
  left.take(inner, type === 'custom' ? customFields : functionFields, `${type}.`);
  const input =
    type === 'custom'
      ? requiredString(inner.input, `${at}.custom.input`)
      : readArguments(inner.arguments, `${at}.function.arguments`);
  return {
    type: 'tool-call',
    id,
    name,
    input,
    at,
    ...(type === 'custom' ? { custom: true } : {}),
    ...(proof === undefined ? {} : { proof }),
    ...left.extra(),
  };
}

/**
 * Decodes the reasoning of an earlier response. `reasoning_details` has more data than the strings beside it, which are only a copy. Proofs
 * of a tool call or of the text are added to that block.
 */
function decodeReasoning(
  message: JsonObject,
  at: string,
  left: Leftovers,
  calls: Block[],
  contentBlocks: Block[],
): readonly Block[] {
  // Most turns of a long history have none.
  if (!reasoningMembers.some((member) => given(message[member]))) return [];
  const strings = ['reasoning_content', 'reasoning'].flatMap((field) => {
    const text = optionalString(message[field], `${at}.${field}`);
    return text === undefined ? [] : [{ field, text }];
  });
  const details = optionalArray(message.reasoning_details, `${at}.reasoning_details`);
  const entries = objectsOf(details);
  if (details !== undefined) left.put('$reasoning_details', entries);
  const blocks: ReasoningBlock[] = [];
  const attach = attacher(calls, contentBlocks);
  entries.forEach((entry, index) => {
    const detail = readDetail(entry);
    const mark = { $detail: index, ...(detail.sealed ? { $sealed: true } : {}) };
    if (attach(detail, mark)) return;
    const { text, proof } = detail;
    const path = `${at}.reasoning_details[${index}]`;
    blocks.push({ type: 'reasoning', text, at: path, extra: { [formatName]: mark }, ...defined({ proof }) });
  });
  const [first] = strings;
  const filled = first === undefined ? blocks : fillEmpty(blocks, first.text, `${at}.${first.field}`);
  const thought = textOf(filled);
  for (const { field, text } of strings) {
    // Keeps an empty string, although there is no reasoning.
    const isSame = text === thought && (text !== '' || entries.length > 0 || field !== first?.field);
    left.put(`$${field}`, isSame ? true : text);
  }
  return filled;
}

/** Puts proofs on the calls that they name, or on the last text; false for one that belongs to the reasoning itself. */
function attacher(calls: Block[], contentBlocks: Block[]): (detail: Detail, mark: JsonObject) => boolean {
  const lastText = contentBlocks.findLastIndex((block) => block.type === 'text');
  const ids = calls.map((block) => (block.type === 'tool-call' ? block.id : undefined));
  // The first of several calls with the same id.
  const places = new Map([...ids.entries()].toReversed().map(([index, id]) => [id, index]));
  return ({ proof, on, callId }, mark) => {
    const list = on === 'text' ? contentBlocks : calls;
    const index = on === 'text' ? lastText : (places.get(callId ?? '') ?? -1);
    const block = list[index];
    if (proof === undefined || (block?.type !== 'text' && block?.type !== 'tool-call')) return false;
    list[index] = { ...block, proof, extra: { [formatName]: { ...block.extra?.[formatName], ...mark } } };
    return true;
  };
}

/**
 * In a stream, `reasoning_content` has the text and the entry only the signature. The one empty entry gets the text that is not in other
 * entries. If no entry has text or can get it, the string becomes a reasoning block of its own.
 */
function fillEmpty(blocks: readonly ReasoningBlock[], whole: string, at: string): readonly ReasoningBlock[] {
  const empty = blocks.findIndex((block) => block.text === '' && block.proof?.kind !== 'encrypted');
  if (empty < 0) {
    if (whole === '' || blocks.some((block) => block.text !== '')) return blocks;
    return [{ type: 'reasoning', text: whole, at }, ...blocks];
  }
  const before = textOf(blocks.slice(0, empty));
  const after = textOf(blocks.slice(empty + 1));
  if (before.length + after.length >= whole.length || !whole.startsWith(before) || !whole.endsWith(after))
    return blocks;
  const text = whole.slice(before.length, whole.length - after.length);
  return blocks.map((block, index) =>
    index === empty
      ? { ...block, text, extra: { [formatName]: { ...block.extra?.[formatName], $text: 'beside' } } }
      : block,
  );
}

function textOf(blocks: readonly ReasoningBlock[]): string {
  return blocks.map((block) => block.text).join('');
}
