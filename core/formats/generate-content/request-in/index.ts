/** Decodes a client's generateContent request. */
import { missingValue, wrongType, wrongValue } from '../../../sdk/errors.ts';
import type { Block, ChatRequest, Message } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalArray, optionalString } from '../../_shared/check.ts';
import type { RouteParams } from '../../../sdk/format.ts';
import { CallPairs } from './calls.ts';
import { decodeParts } from './parts.ts';
import { decodeToolConfig, decodeTools } from './tools.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { decodeSettings } from '../settings.ts';
import { dataFields, formatName, official, leftovers, structures } from '../wire.ts';
import { setOf } from '../../_shared/fields.ts';

/** Fields of the body that are read; all others are extra. */
const readFields = setOf('model contents systemInstruction tools toolConfig generationConfig serviceTier');

/** Returns the model in the path without any leading `models/`, also repeated ones. Throws 400 if there is none. */
export function modelOf(params: RouteParams): string {
  const model = params.model === undefined ? '' : params.model.replace(/^(?:models\/)+/, '');
  if (model === '') throw missingValue('model');
  return model;
}

/** Decodes a client's body. Throws 400 with the path. */
export function decodeRequest(body: JsonObject, params: RouteParams): ChatRequest {
  return decodeChat(body, params, leftovers());
}

/** Decodes a client's body, with extras that the caller has begun. Throws 400 with the path. */
export function decodeChat(wire: JsonObject, params: RouteParams, extras: Leftovers): ChatRequest {
  const body = official(wire, 'request');
  const model = modelOf(params);
  const settings = decodeSettings(body, extras);
  const calls = new CallPairs();
  const system = decodeSystem(body.systemInstruction, calls);
  const { leading, messages } = decodeContents(body.contents, calls);
  const tools = decodeTools(body.tools, extras);
  const toolChoice = decodeToolConfig(body.toolConfig, extras);
  const named = optionalString(body.model, 'model');
  if (named !== undefined) extras.put('$model', named.startsWith('models/') ? 'models/' : '');
  extras.take(body, readFields);
  return {
    operation: 'chat',
    format: formatName,
    model,
    stream: params.stream === true,
    system: [...system, ...leading],
    messages,
    tools,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    settings,
    ...extras.extra(),
  };
}

function decodeSystem(value: JsonValue | undefined, calls: CallPairs): readonly Message[] {
  if (!given(value)) return [];
  const at = 'systemInstruction';
  if (typeof value === 'string') {
    return [{ role: 'system', content: [{ type: 'text', text: value, at }], plain: true, at }];
  }
  return [decodeContent(value, at, calls, true)];
}

/** Throws 400 for instructions with parts other than text, whatever the target. Parts of unknown kinds are allowed. */
function checkInstructions(blocks: readonly Block[]): void {
  const wrong = blocks.find((block) => {
    if (block.type === 'opaque') return dataFields.some((field) => given(block.value[field]));
    return block.type !== 'text' && block.type !== 'reasoning';
  });
  if (wrong !== undefined) throw wrongValue(wrong.at ?? 'systemInstruction', 'a text part');
}

/** Returns the turns; system contents that stand before the first turn are instructions. */
function decodeContents(
  value: JsonValue | undefined,
  calls: CallPairs,
): { readonly leading: readonly Message[]; readonly messages: readonly Message[] } {
  if (!given(value)) throw missingValue('contents');
  const contents = isObject(value) ? [value] : (optionalArray(value, 'contents') ?? []);
  if (contents.length === 0) throw wrongValue('contents', 'a list of at least one content');
  const leading: Message[] = [];
  const messages: Message[] = [];
  for (const [index, content] of contents.entries()) {
    const message = decodeContent(content, isObject(value) ? 'contents' : `contents[${index}]`, calls);
    if (message.role === 'system' && messages.length === 0) leading.push(message);
    else messages.push(message);
  }
  return { leading, messages };
}

function decodeContent(value: JsonValue, at: string, calls: CallPairs, instructs = false): Message {
  if (!isObject(value)) throw wrongType(at, 'an object');
  const content = official(value, 'content');
  const extras = leftovers().take(content, structures.content.known);
  const word = optionalString(content.role, `${at}.role`);
  const role = instructs ? 'system' : neutralRole(word, `${at}.role`);
  const usual = instructs ? undefined : role === 'assistant' ? 'model' : 'user';
  if (word !== usual && (instructs || role !== 'system')) extras.put('$role', word ?? null);
  const blocks = decodeParts(content.parts, `${at}.parts`, calls);
  if (role === 'system') checkInstructions(blocks);
  // A single text corresponds to a string in other formats.
  const plain = blocks.length === 1 && blocks[0]?.type === 'text' ? { plain: true } : {};
  return { role, content: blocks, ...plain, at, ...extras.extra() };
}

/**
 * `user` and `model`. Clients also write `function` and `system`, and no role at all is legal. Throws 400 for others, as Google does:
 * github:router-for-me/CLIProxyAPI#2791, `Please use a valid role: user, model.`
 */
function neutralRole(word: string | undefined, path: string): Message['role'] {
  switch (word?.toLowerCase()) {
    case undefined:
    case '':
    case 'user':
      return 'user';
    case 'model':
    case 'assistant':
      return 'assistant';
    case 'function':
    case 'tool':
      return 'tool';
    case 'system':
    case 'developer':
      return 'system';
    default:
      throw wrongValue(path, 'user or model');
  }
}
