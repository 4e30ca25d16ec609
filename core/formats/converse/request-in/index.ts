/** Reads a client's Converse request. */
import { missingValue } from '../../../sdk/errors.ts';
import type { ChatRequest, ChatSettings } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { given, optionalArray, optionalObject, requiredArray, requiredModel } from '../../_shared/check.ts';
import { readMessages } from '../../_shared/history.ts';
import { readSettings } from '../../_shared/settings.ts';
import type { RouteParams } from '../../../sdk/format.ts';
import { decodeReasoning } from '../reasoning.ts';
import { decodeFormat } from '../response-format.ts';
import { knownFields, settingRows } from '../settings.ts';
import { formatName, leftovers } from '../wire.ts';
import { decodeBlocks } from './parts.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import { defined, setOf } from '../../_shared/fields.ts';
import type { Leftovers } from '../../_shared/extra.ts';

const topFields: ReadonlySet<string> = new Set([
  'messages',
  'system',
  'toolConfig',
  'requestMetadata',
  ...Object.keys(knownFields),
]);
const toolFields = setOf('tools toolChoice');

/** Returns the model that the path names. Throws 400 when it names none. */
export function modelOf(params: RouteParams): string {
  return requiredModel(params.model);
}

/** Returns a client's body as a neutral request. Throws 400 with the path for every field that the gateway reads and cannot understand. */
export function decodeRequest(
  body: JsonObject,
  params: RouteParams,
  operation: ChatRequest['operation'] = 'chat',
): ChatRequest {
  const left = leftovers().take(body, topFields);
  for (const [field, known] of Object.entries(knownFields))
    left.takeInner(field, optionalObject(body[field], field), known);
  const toolConfig = optionalObject(body.toolConfig, 'toolConfig');
  left.takeInner('toolConfig', toolConfig, toolFields);
  const settings = decodeSettings(body, left);
  const toolChoice = decodeToolChoice(toolConfig?.toolChoice, left);
  return {
    operation,
    format: formatName,
    model: modelOf(params),
    stream: operation === 'chat' && params.stream === true,
    ...decodeMessages(body),
    tools: decodeTools(toolConfig?.tools),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    settings,
    ...left.extra(),
  };
}

function decodeSettings(body: JsonObject, left: Leftovers): ChatSettings {
  const reasoning = decodeReasoning(body, left);
  const responseFormat = decodeFormat(body, left);
  return {
    ...readSettings(body, settingRows),
    ...defined({ reasoning, responseFormat }),
  };
}

/** Returns `system` and the history. */
function decodeMessages(body: JsonObject): Pick<ChatRequest, 'system' | 'messages'> {
  const list = optionalArray(body.messages, 'messages');
  // A prompt that the provider keeps brings messages of its own.
  if (list === undefined && !given(body.promptVariables)) throw missingValue('messages');
  const { leading, rest } = readMessages(list, formatName, (value, path) => ({
    content: decodeBlocks(requiredArray(value, path), path),
  }));
  const blocks = optionalArray(body.system, 'system');
  if (blocks === undefined) return { system: leading, messages: rest };
  const content = decodeBlocks(blocks, 'system');
  return { system: [{ role: 'system', content, at: 'system' }, ...leading], messages: rest };
}
