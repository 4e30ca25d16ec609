/** Cohere's newer chat at OCI (`CohereChatRequestV2`): requests and replies. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import type { EncodeTarget } from 'sluice/channel-kit';
import { objectsOf, type DialectReply } from '../_kit/dialect/chat-dialect.ts';
import { beginChat, commonSettings, functionOf, imagePart, noPart, stopsOf, usageOf } from './chat.ts';
import { annotationOf, cohereFormat, finishOf } from './cohere-chat.ts';

/*
 * The words that Oracle's native chat has for Cohere's Command A models: turns with pictures, thinking that is shown and can be turned off.
 *
 * They share no codec with channels/cohere because requests alone are alike, in other letters. Cohere streams events of blocks and calls by name,
 * Oracle streams pieces of a message whose last one may repeat all, and each counts usage in members of its own.
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/generativeaiinference/lib/model/cohere-chat-request-v2.ts
 * https://github.com/oracle/langchain-oracle/blob/main/libs/oci/langchain_oci/chat_models/providers/cohere.py
 */

/** The name of this format in requests and replies. */
export const commandAFormat = 'COHEREV2';

/** Members of chat completions by their names here; the last two are known to clients that name Cohere's own. */
const settings: Readonly<Record<string, string>> = {
  ...commonSettings,
  max_completion_tokens: 'maxTokens',
  safety_mode: 'safetyMode',
  strict_tools: 'isStrictToolsEnabled',
};
const others = [
  'messages',
  'tools',
  'tool_choice',
  'response_format',
  'stop',
  'documents',
  'reasoning_effort',
  'thinking',
];

/** Returns a body of chat completions as the `chatRequest` of Oracle's for Command A. */
export function commandARequest(body: JsonObject, target: EncodeTarget): JsonObject {
  const { known, begun } = beginChat(body, { settings, others }, target);
  const { messages, tools, tool_choice: choice, response_format: format, documents } = known;
  const stop = stopsOf(known);
  if (isObject(choice)) target.drop('tool_choice');
  const mode =
    choice === 'required' || isObject(choice) ? 'REQUIRED' : choice === 'none' ? 'NONE' : undefined;
  return {
    apiFormat: commandAFormat,
    messages: objectsOf(messages).map((message) => messageOf(message, target)),
    ...begun,
    ...(stop === undefined ? {} : { stopSequences: stop }),
    ...(Array.isArray(documents) && documents.length > 0 ? { documents } : {}),
    ...(objectsOf(tools).length === 0
      ? {}
      : { tools: objectsOf(tools).map((tool) => ({ type: 'FUNCTION', function: functionOf(tool) })) }),
    ...(mode === undefined ? {} : { toolsChoice: mode }),
    ...cohereFormat(format),
    ...thinkingOf(known),
  };
}

/** Returns the reasoning settings. Models with reasoning use it by default. */
function thinkingOf({ reasoning_effort: effort, thinking }: JsonObject): JsonObject {
  if (isObject(thinking)) {
    const { type, token_budget: budget } = thinking;
    return {
      thinking: {
        type: type === 'disabled' ? 'DISABLED' : 'ENABLED',
        ...(typeof budget === 'number' ? { tokenBudget: budget } : {}),
      },
    };
  }
  return typeof effort === 'string' ? { thinking: { type: effort === 'none' ? 'DISABLED' : 'ENABLED' } } : {};
}

function messageOf(message: JsonObject, target: EncodeTarget): JsonObject {
  const { role = 'user', content, tool_calls: list, tool_call_id: id } = message;
  const calls = objectsOf(list);
  const parts =
    typeof content === 'string'
      ? [textPart(content)]
      : objectsOf(content).flatMap((part) => partOf(part, target));
  return {
    role: role === 'developer' ? 'SYSTEM' : String(role).toUpperCase(),
    // The content of an assistant message must not be empty.
    content: parts.every(({ text }) => text === '') ? [textPart(' ')] : parts,
    ...(calls.length === 0
      ? {}
      : {
          toolCalls: calls.map(({ id: call, function: own }) => ({
            id: call ?? '',
            type: 'FUNCTION',
            function: own ?? {},
          })),
        }),
    ...(typeof id === 'string' ? { toolCallId: id } : {}),
  };
}

const textPart = (text: string): JsonObject => ({ type: 'TEXT', text });

function partOf(part: JsonObject, target: EncodeTarget): readonly JsonObject[] {
  const { text, image_url: image, file } = part;
  if (typeof text === 'string') return [textPart(text)];
  if (isObject(image)) return [imagePart(image)];
  const { file_data: data, filename } = isObject(file) ? file : {};
  const [, bytes] = /^data:text\/[^,]*;base64,(.*)$/s.exec(String(data)) ?? [];
  if (bytes !== undefined) {
    const title = typeof filename === 'string' ? { title: filename } : {};
    return [
      { type: 'DOCUMENT', document: { ...title, text: Buffer.from(bytes, 'base64').toString('utf8') } },
    ];
  }
  return noPart(part, target);
}

/** Returns a whole reply as the body of chat completions. */
export function commandAWhole(body: JsonObject): JsonObject {
  const { tool_calls: calls, ...members } = messageMembers(body, 0);
  const list = objectsOf(calls).map(({ index: _index, ...call }) => call);
  return {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: '',
          ...members,
          ...(list.length === 0 ? {} : { tool_calls: list }),
        },
        finish_reason: finishOf(body, list.length > 0) ?? 'stop',
      },
    ],
    ...usageOf(body['usage']),
  };
}

/** Decodes a stream. Ignores a repetition of the text in the last chunk. */
export function commandAReply(): DialectReply {
  const hasSent = { content: false, reasoning_content: false };
  const ids = new Set<JsonValue | undefined>();
  return {
    chunks(piece) {
      const isEnd = typeof piece['finishReason'] === 'string';
      const { tool_calls: calls, ...delta } = messageMembers(piece, ids.size);
      const texts = Object.entries(delta).filter(
        ([name]) => !isEnd || !Object.hasOwn(hasSent, name) || !hasSent[name as keyof typeof hasSent],
      );
      for (const [name] of texts)
        if (Object.hasOwn(hasSent, name)) hasSent[name as keyof typeof hasSent] = true;
      const fresh = objectsOf(calls).filter(({ id }) => !ids.has(id));
      for (const { id } of fresh) ids.add(id);
      return [
        {
          choices: [
            {
              index: 0,
              delta: { ...Object.fromEntries(texts), ...(fresh.length === 0 ? {} : { tool_calls: fresh }) },
              finish_reason: finishOf(piece, ids.size > 0) ?? null,
            },
          ],
          ...usageOf(piece['usage']),
        },
      ];
    },
  };
}

/** Returns the text, thinking, the plan before calls, citations and calls of a message, as far as there are any. The first call has this number. */
function messageMembers({ message }: JsonObject, first: number): JsonObject {
  const { content, toolPlan: plan, toolCalls, citations } = isObject(message) ? message : {};
  const words = (name: string): string =>
    objectsOf(content)
      .map((part) => (typeof part[name] === 'string' ? part[name] : ''))
      .join('');
  const text = words('text');
  const thought = words('thinking') + (typeof plan === 'string' ? plan : '');
  const list = objectsOf(citations).map(annotationOf);
  const calls = objectsOf(toolCalls).map(({ id, function: own }, index) => {
    const { name = '', arguments: input = '' } = isObject(own) ? own : {};
    return { index: first + index, id: id ?? '', type: 'function', function: { name, arguments: input } };
  });
  return {
    ...(text === '' ? {} : { content: text }),
    ...(thought === '' ? {} : { reasoning_content: thought }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(list.length === 0 ? {} : { annotations: list }),
  };
}
