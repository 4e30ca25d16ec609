/** Reads a client's messages request. */
import { missingValue, wrongValue } from '../../../sdk/errors.ts';
import type { ChatRequest, ChatSettings } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalBoolean, optionalObject, requiredArray, requiredModel } from '../../_shared/check.ts';
import { readSettings } from '../../_shared/settings.ts';
import { decodeContent, type Content } from './parts.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import { decodeReasoning } from '../reasoning.ts';
import { decodeFormat } from '../response-format.ts';
import { settingRows } from '../settings.ts';
import { formatName, leftovers } from '../wire.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { readMessages } from '../../_shared/history.ts';
import { defined, setOf } from '../../_shared/fields.ts';

const topFields = new Set([
  ...setOf(`
  model messages system stream tools tool_choice thinking output_config output_format metadata
`),
  ...settingRows.map((row) => row.path).filter((path) => !path.includes('.')),
]);
const configFields = setOf('effort format');
const metadataFields = setOf('user_id');

/** Returns a client's body as a neutral request. Throws 400 with the path for every field that the gateway reads and cannot understand. */
export function decodeRequest(body: JsonObject, operation: ChatRequest['operation']): ChatRequest {
  const left = leftovers().take(body, topFields);
  const stream = optionalBoolean(body.stream, 'stream');
  if (stream === false) left.put('$stream', false);
  if (operation === 'chat' && !given(body.max_tokens)) throw missingValue('max_tokens');
  const settings = decodeSettings(body, left);
  const { toolChoice, parallelTools } = decodeToolChoice(body.tool_choice, left);
  const { system, messages } = decodeMessages(body);
  if (Array.isArray(body.tools) && body.tools.length === 0) left.put('$tools', 'empty');
  return {
    operation,
    format: formatName,
    model: requiredModel(body.model),
    stream: operation === 'chat' && stream === true,
    system,
    messages,
    tools: decodeTools(body.tools),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    settings: parallelTools === undefined ? settings : { ...settings, parallelTools },
    ...left.extra(),
  };
}

function decodeSettings(body: JsonObject, left: Leftovers): ChatSettings {
  const metadata = optionalObject(body.metadata, 'metadata');
  const config = optionalObject(body.output_config, 'output_config');
  const settings = readSettings(body, settingRows);
  const reasoning = decodeReasoning(body, left);
  const responseFormat = decodeFormat(body, left);
  if (given(body.service_tier) && settings.serviceTier === undefined)
    left.put('service_tier', body.service_tier);
  left.takeInner('metadata', metadata, metadataFields).takeInner('output_config', config, configFields);
  return {
    ...settings,
    ...defined({ reasoning, responseFormat }),
  };
}

/**
 * Decodes the content of a message. A system message may only have settings for the turns after it: @anthropic-ai/sdk 1.14.0,
 * BetaSystemMessageParam.
 */
function decodeMessageContent(value: JsonValue | undefined, path: string, message: JsonObject): Content {
  if (!given(value) && message.role === 'system' && isObject(message.output_config)) return { content: [] };
  return decodeContent(value, path);
}

/** Returns `system` and the history. */
function decodeMessages(body: JsonObject): Pick<ChatRequest, 'system' | 'messages'> {
  const list = requiredArray(body.messages, 'messages');
  const { leading, rest } = readMessages(list, formatName, decodeMessageContent);
  if (rest[0]?.role === 'assistant')
    throw wrongValue(`messages[${leading.length}].role`, '"user": the first message is the user\'s');
  if (!given(body.system)) return { system: leading, messages: rest };
  const standing = { role: 'system', ...decodeContent(body.system, 'system'), at: 'system' } as const;
  return { system: [standing, ...leading], messages: rest };
}
