import { missing, wrongValue } from '../../../sdk/errors.ts';
import type { ChatRequest, ChatSettings, Message } from '../../../model/chat.ts';
import { type JsonObject } from '../../../model/json.ts';
import {
  given,
  readObjects,
  optionalArray,
  optionalObject,
  requiredModel,
  requiredString,
  requiredArray,
} from '../../_shared/check.ts';
import { readSettings, type MutableObject } from '../../_shared/settings.ts';
import type { RouteParams } from '../../../sdk/format.ts';
import { decodeReasoning } from '../reasoning.ts';
import { decodeFormat } from '../response-format.ts';
import { knownFields, settingRows } from '../settings.ts';
import { keepInner, name, unknown, withExtra } from '../wire.ts';
import { decodeBlocks } from './parts.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import { defined } from '../../_shared/fields.ts';
import { setOf } from '../../_shared/extra.ts';

const topFields: ReadonlySet<string> = new Set([
  'messages',
  'system',
  'toolConfig',
  'requestMetadata',
  ...Object.keys(knownFields),
]);
const toolFields = setOf('tools toolChoice');

/** The model that the path names. Throws 400 when it names none. */
export function modelOf(params: RouteParams): string {
  return requiredModel(params.model);
}

/** A client's body as a neutral request. Throws 400 with the path for every field that the gateway reads and cannot understand. */
export function decodeRequest(
  body: JsonObject,
  params: RouteParams,
  operation: ChatRequest['operation'] = 'chat',
): ChatRequest {
  const rest: MutableObject = unknown(body, topFields);
  for (const [field, known] of Object.entries(knownFields)) keepObject(rest, field, body, known);
  keepObject(rest, 'toolConfig', body, toolFields);
  const settings = decodeSettings(body, rest);
  const toolConfig = optionalObject(body.toolConfig, 'toolConfig');
  const toolChoice = decodeToolChoice(toolConfig?.toolChoice, rest);
  return {
    operation,
    format: name,
    model: modelOf(params),
    stream: operation === 'chat' && params.stream === true,
    ...decodeMessages(body),
    tools: decodeTools(toolConfig?.tools),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    settings,
    ...withExtra(rest),
  };
}

function decodeSettings(body: JsonObject, rest: MutableObject): ChatSettings {
  const reasoning = decodeReasoning(body, rest);
  const responseFormat = decodeFormat(body, rest);
  return {
    ...readSettings(body, settingRows),
    ...defined({ reasoning, responseFormat }),
  };
}

/** Keeps what is unknown in an object of the top level, and that it was there when it says nothing. */
function keepObject(rest: MutableObject, key: string, body: JsonObject, known: ReadonlySet<string>): void {
  const value = optionalObject(body[key], key);
  if (value === undefined) return;
  keepInner(rest, key, value, known);
  if (!Object.values(value).some(given)) rest[`$${key}`] = 'empty';
}

/** `system` and the history. System turns before the first other one are instructions too; where they stood is a spelling. */
function decodeMessages(body: JsonObject): Pick<ChatRequest, 'system' | 'messages'> {
  const list = optionalArray(body.messages, 'messages');
  // A prompt that the provider keeps brings messages of its own.
  if (list === undefined && !given(body.promptVariables)) throw missing('messages');
  if (list?.length === 0) throw wrongValue('messages', 'a list of at least one message');
  const decoded = readObjects(list, 'messages', decodeMessage);
  const first = decoded.findIndex((message) => message.role !== 'system');
  const leading = first < 0 ? decoded : decoded.slice(0, first);
  const system: Message[] = leading.map((message) => ({
    ...message,
    extra: { [name]: { ...message.extra?.[name], $message: true } },
  }));
  const blocks = optionalArray(body.system, 'system');
  if (blocks !== undefined)
    system.unshift({ role: 'system', content: decodeBlocks(blocks, 'system'), at: 'system' });
  return { system, messages: decoded.slice(leading.length) };
}

const messageFields = setOf('role content');

function decodeMessage(value: JsonObject, at: string): Message {
  const role = requiredString(value.role, `${at}.role`);
  if (role !== 'user' && role !== 'assistant' && role !== 'system')
    throw wrongValue(`${at}.role`, '"user", "assistant" or "system"');
  return {
    role,
    content: decodeBlocks(requiredArray(value.content, `${at}.content`), `${at}.content`),
    ...withExtra(unknown(value, messageFields)),
    at,
  };
}
