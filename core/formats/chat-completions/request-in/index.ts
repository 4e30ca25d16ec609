/** Reads a client's chat completions request. */
import { missingValue, wrongValue } from '../../../sdk/errors.ts';
import type { ChatRequest, ChatSettings, Message } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import {
  given,
  readObjects,
  optionalString,
  peek,
  requiredString,
  requiredArray,
} from '../../_shared/check.ts';
import { readSettings } from '../../_shared/settings.ts';
import { decodeAssistant, FunctionCallIds } from './assistant.ts';
import { decodeContent } from './parts.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { keepReasoning, readReasoning, reasoningFields } from '../reasoning/index.ts';
import { keepResponseFormat } from '../response-format.ts';
import { rows } from '../settings.ts';
import { formatName, leftovers } from '../wire.ts';
import { keepUser } from '../../_openai/settings.ts';
import { keepStream } from '../../_openai/stream.ts';
import { setOf } from '../../_shared/fields.ts';

const bodyFields = new Set([
  ...setOf(`
  model messages stream stream_options tools tool_choice functions function_call web_search_options
`),
  ...reasoningFields,
  ...rows.map((row) => row.path),
]);
const messageFields = setOf('role content');
const toolFields = setOf('role content tool_call_id name');

/** Returns a client's chat request in the neutral model. Throws 400 with the client's path. */
export function decodeRequest(body: JsonObject): ChatRequest {
  const { model, stream } = peek(body);
  const left = leftovers().take(body, bodyFields);
  const { system, messages } = decodeMessages(body);
  const tools = decodeTools(body);
  const toolChoice = decodeToolChoice(body, left);
  const settings = decodeSettings(body, left);
  if (Array.isArray(body.tools) && body.tools.length === 0) left.put('$tools', 'empty');
  keepStream(body, left);
  return {
    operation: 'chat',
    format: formatName,
    model,
    stream,
    system,
    messages,
    tools,
    settings,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...left.extra(),
  };
}

function decodeSettings(body: JsonObject, left: Leftovers): ChatSettings {
  const settings = readSettings(body, rows);
  const reasoning = readReasoning(body);
  keepReasoning(body, left);
  keepResponseFormat(body.response_format, left);
  if (typeof body.stop === 'string') left.put('$stop', 'string');
  if (typeof body.modalities === 'string') left.put('$modalities', 'string');
  if (given(body.max_tokens)) {
    if (given(body.max_completion_tokens)) {
      left.put('$max_tokens', body.max_tokens);
      left.put('$max_completion_tokens', body.max_completion_tokens);
    } else left.put('$limit', 'max_tokens');
  }
  keepUser(body, left);
  return reasoning === undefined ? settings : { ...settings, reasoning };
}

function decodeMessages(body: JsonObject): {
  readonly system: readonly Message[];
  readonly messages: readonly Message[];
} {
  if (requiredArray(body.messages, 'messages').length === 0)
    throw wrongValue('messages', 'a list of at least one message');
  const system: Message[] = [];
  const messages: Message[] = [];
  const ids = new FunctionCallIds();
  readObjects(body.messages, 'messages', (value, at, index) => {
    const message = decodeMessage(value, at, index, ids);
    (message.role === 'system' && messages.length === 0 ? system : messages).push(message);
  });
  return { system, messages };
}

function decodeMessage(value: JsonObject, at: string, index: number, ids: FunctionCallIds): Message {
  const role = requiredString(value.role, `${at}.role`);
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      return decodePromptMessage(value, role, at);
    case 'assistant':
      return decodeAssistant(value, index, ids);
    case 'tool':
      return decodeToolMessage(value, requiredString(value.tool_call_id, `${at}.tool_call_id`), at);
    case 'function':
      return decodeToolMessage(value, ids.answer(requiredString(value.name, `${at}.name`), index), at);
    default:
      throw wrongValue(`${at}.role`, 'system, developer, user, assistant or tool');
  }
}

function decodePromptMessage(
  message: JsonObject,
  role: 'system' | 'developer' | 'user',
  at: string,
): Message {
  const left = leftovers().take(message, messageFields);
  if (role === 'developer') left.put('$role', role);
  if (!given(message.content)) throw missingValue(`${at}.content`);
  return {
    role: role === 'user' ? 'user' : 'system',
    ...decodeContent(message.content, `${at}.content`),
    at,
    ...left.extra(),
  };
}

function decodeToolMessage(message: JsonObject, id: string, at: string): Message {
  const left = leftovers().take(message, toolFields);
  const name = optionalString(message.name, `${at}.name`);
  // A deprecated `function` message may have no content.
  if (!given(message.content) && message.role === 'tool') throw missingValue(`${at}.content`);
  const content = decodeContent(given(message.content) ? message.content : '', `${at}.content`);
  return {
    role: 'tool',
    content: [{ type: 'tool-result', id, at, ...content, ...(name === undefined ? {} : { name }) }],
    at,
    ...left.extra(),
  };
}
