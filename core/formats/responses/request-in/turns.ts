/** Decodes the `input` items of a Responses request into turns: messages, reasoning, calls, and items that are no turns. */
import { missingValue, wrongType, wrongValue } from '../../../sdk/errors.ts';
import type { Block, Message, ReasoningBlock, Tool } from '../../../model/chat.ts';
import type { Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalArray, optionalObject, optionalString, requiredString } from '../../_shared/check.ts';
import { carriedBy, proofIn, unsealProof } from '../../_shared/proof.ts';
import { decodeCall, decodeOutput } from './calls.ts';
import { decodeContent } from './parts.ts';
import { decodeToolList } from './tools.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined, setOf } from '../../_shared/fields.ts';
import { formatName, leftovers } from '../wire.ts';

/** An item that is no turn of the conversation. It is written back at its position; its contents are decoded elsewhere in the request. */
export interface Aside extends JsonObject {
  readonly index: number;
  readonly item: JsonObject;
}

/** The input of a request, read. */
export interface DecodedInput {
  /** Instructions before the first turn. */
  readonly system: readonly Message[];
  /** One entry for each item. Items of one turn are consecutive. */
  readonly messages: readonly Message[];
  /** Tools of `additional_tools` items. */
  readonly tools: readonly Tool[];
  readonly asides: readonly Aside[];
}

/** Types of records of hosted tools. They can be dropped, because the answer that follows contains their findings. */
const spare = setOf(
  'web_search_call file_search_call code_interpreter_call image_generation_call mcp_list_tools mcp_call',
);
const messageFields = setOf('type id role content status phase');
const messageMarks = ['type', 'id', 'status', 'phase'];
const developerMarks = [...messageMarks, 'role'];
const reasoningFields = setOf('type id summary content encrypted_content status');

/** Decodes `input`. A string is one user message. `left` collects the members of namespaces of added tools. Throws 400 with the path. */
export function decodeInput(input: JsonValue | undefined, left: Leftovers): DecodedInput {
  if (typeof input === 'string') {
    const message: Message = {
      role: 'user',
      ...decodeContent(input, 'input'),
      at: 'input',
      ...leftovers().put('$message', 'string').extra(),
    };
    return { system: [], messages: [message], tools: [], asides: [] };
  }
  if (given(input) && !Array.isArray(input)) throw wrongType('input', 'a string or an array');
  const system: Message[] = [];
  const messages: Message[] = [];
  const tools: Tool[] = [];
  const asides: Aside[] = [];
  let waiting: Proof | undefined;
  (optionalArray(input, 'input') ?? []).forEach((item, index) => {
    const at = `input[${index}]`;
    if (!isObject(item)) throw wrongType(at, 'an object');
    const type = typeOf(item, at);
    if (type === 'additional_tools' || type === 'configuration_update') {
      if (type === 'additional_tools')
        for (const tool of decodeToolList(item.tools, `${at}.tools`, left)) tools.push(tool);
      asides.push({ index, item });
      return;
    }
    // A proof of another format precedes its call, but follows its text, because it is known when a call begins and when a text ends.
    const carried = type === 'reasoning' ? carriedBy(item.encrypted_content) : undefined;
    if (carried?.on === 'text' && proveText(messages, carried.proof)) return;
    if (carried?.on === 'tool-call') {
      waiting = carried.proof;
      return;
    }
    const message = decodeItem(item, type, at);
    const [call] = message.content;
    const proven: Message =
      waiting !== undefined && call?.type === 'tool-call'
        ? { ...message, content: [{ ...call, proof: waiting }] }
        : message;
    waiting = undefined;
    (message.role === 'system' && messages.length === 0 ? system : messages).push(proven);
  });
  return { system, messages, tools, asides };
}

/** Adds the proof to the last text of the history. Returns false if there is none. */
function proveText(messages: Message[], proof: Proof): boolean {
  const message = messages.at(-1);
  const last = message?.content.at(-1);
  if (message?.role !== 'assistant' || last?.type !== 'text' || last.proof !== undefined) return false;
  messages[messages.length - 1] = {
    ...message,
    content: [...message.content.slice(0, -1), { ...last, proof }],
  };
  return true;
}

/** Returns the type of an item: a message may leave it out, and so may a reference, which has nothing but an id. */
function typeOf(item: JsonObject, at: string): string {
  const type = optionalString(item.type, `${at}.type`);
  if (type !== undefined) return type;
  return !given(item.role) && typeof item.id === 'string' ? 'item_reference' : 'message';
}

function decodeItem(item: JsonObject, type: string, at: string): Message {
  if (type === 'message') return decodeMessage(item, at);
  if (type === 'reasoning') return { role: 'assistant', content: [decodeReasoning(item, at)], at };
  const call = decodeCall(item, type, at);
  if (call !== undefined) return { role: 'assistant', content: [call], at };
  return decodeOutput(item, type, at) ?? opaqueTurn(item, type, at);
}

function decodeMessage(item: JsonObject, at: string): Message {
  const role = requiredString(item.role, `${at}.role`);
  if (!['user', 'assistant', 'system', 'developer'].includes(role))
    throw wrongValue(`${at}.role`, 'user, assistant, system or developer');
  if (!given(item.content)) throw missingValue(`${at}.content`);
  // Members that all messages have come first, because objects share V8's hidden classes up to their first different member.
  const left = leftovers()
    .put('$message', true)
    .mark('$item', item, role === 'developer' ? developerMarks : messageMarks)
    .take(item, messageFields);
  return {
    role: role === 'developer' ? 'system' : (role as 'user' | 'assistant' | 'system'),
    ...decodeContent(item.content, `${at}.content`),
    at,
    ...left.extra(),
  };
}

/**
 * Decodes reasoning of an earlier answer. Its text is the full reasoning where the provider shows it, else the summary. Its proof is the provider's
 * own, or one of another format that the gateway wrote into `encrypted_content`.
 */
function decodeReasoning(item: JsonObject, at: string): ReasoningBlock {
  const text = reasoningText(item, at);
  const encrypted = optionalString(item.encrypted_content, `${at}.encrypted_content`) ?? '';
  const left = leftovers()
    .take(item, reasoningFields)
    .mark('$item', item, [...reasoningFields]);
  if (unsealProof(encrypted) !== undefined) left.put('$sealed', true);
  left.put('$text', text);
  const proof = encrypted === '' ? undefined : proofIn(formatName, 'encrypted', encrypted);
  return { type: 'reasoning', text, at, ...defined({ proof }), ...left.extra() };
}

function reasoningText(item: JsonObject, at: string): string {
  const content = textsOf(item.content, `${at}.content`);
  return content.some((text) => text !== '')
    ? content.join('')
    : textsOf(item.summary, `${at}.summary`).join('\n\n');
}

function textsOf(value: JsonValue | undefined, path: string): readonly string[] {
  return (optionalArray(value, path) ?? []).map(
    (part, index) =>
      optionalString(optionalObject(part, `${path}[${index}]`)?.text, `${path}[${index}].text`) ?? '',
  );
}

/** Returns the turn of an item that only this format knows: a user turn for outputs and triggers of the client, else an assistant turn. */
function opaqueTurn(item: JsonObject, type: string, at: string): Message {
  const block: Block = {
    type: 'opaque',
    format: formatName,
    value: item,
    at,
    ...(spare.has(type) ? { spare: true } : {}),
  };
  const fromClient = /_(?:output|response|trigger)$/.test(type);
  return { role: fromClient ? 'user' : 'assistant', content: [block], at };
}
