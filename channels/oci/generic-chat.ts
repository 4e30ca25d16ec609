/** Chat of all other makers at OCI (`GenericChatRequest`): requests and replies. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { lookupTable, type EncodeTarget } from 'sluice/channel-kit';
import { objectsOf, type DialectReply } from '../_kit/dialect/chat-dialect.ts';
import {
  beginChat,
  commonSettings,
  functionOf,
  imagePart,
  noPart,
  renamed,
  stopsOf,
  usageOf,
} from './chat.ts';

/*
 * The words that Oracle's native chat has for the models of all makers but Cohere.
 * https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/datatypes/GenericChatRequest
 * https://github.com/oracle/oci-typescript-sdk/tree/master/lib/generativeaiinference/lib/model
 */

/** Members of chat completions by their names here, whose values are the same. */
const settings: Readonly<Record<string, string>> = {
  ...commonSettings,
  max_completion_tokens: 'maxCompletionTokens',
  n: 'numGenerations',
  logit_bias: 'logitBias',
  metadata: 'metadata',
  parallel_tool_calls: 'isParallelToolCalls',
};
/** Settings whose values are written in capitals. */
const words: Readonly<Record<string, string>> = {
  reasoning_effort: 'reasoningEffort',
  // AUTO, DEFAULT and PRIORITY: oci-generativeaiinference 2.142.0, lib/model/generic-chat-request.d.ts.
  service_tier: 'serviceTier',
  verbosity: 'verbosity',
};
const others = [
  ...Object.keys(words),
  'messages',
  'tools',
  'tool_choice',
  'response_format',
  'stop',
  'prediction',
  'web_search_options',
];

/** Returns a body of chat completions as the `chatRequest` of Oracle's. */
export function genericRequest(body: JsonObject, target: EncodeTarget): JsonObject {
  const { known, begun } = beginChat(body, { settings, others }, target);
  const {
    messages,
    tools,
    tool_choice: choice,
    response_format: format,
    prediction,
    web_search_options: search,
  } = known;
  const stop = stopsOf(known);
  return {
    apiFormat: 'GENERIC',
    messages: objectsOf(messages).map((message) => messageOf(message, target)),
    ...begun,
    ...Object.fromEntries(
      Object.entries(renamed(known, words)).map(([name, word]) => [name, String(word).toUpperCase()]),
    ),
    ...(stop === undefined ? {} : { stop }),
    ...(objectsOf(tools).length === 0
      ? {}
      : { tools: objectsOf(tools).map((tool) => ({ type: 'FUNCTION', ...functionOf(tool) })) }),
    ...(choice === undefined || choice === null ? {} : { toolChoice: choiceOf(choice) }),
    ...(isObject(format) ? { responseFormat: formatOf(format) } : {}),
    ...(isObject(prediction)
      ? { prediction: { type: 'CONTENT', content: partsOf(prediction['content'], target) } }
      : {}),
    ...(isObject(search) ? { webSearchOptions: searchOf(search) } : {}),
  };
}

/** oci-generativeaiinference 2.142.0, lib/model/web-search-options.d.ts and approximate-location.d.ts. */
function searchOf({ search_context_size: size, user_location: location }: JsonObject): JsonObject {
  const approximate = isObject(location) ? location['approximate'] : undefined;
  return {
    ...(typeof size === 'string' ? { searchContextSize: size.toUpperCase() } : {}),
    ...(isObject(approximate)
      ? {
          userLocation: renamed(approximate, {
            city: 'city',
            region: 'region',
            country: 'country',
            timezone: 'timezone',
          }),
        }
      : {}),
  };
}

function messageOf(message: JsonObject, target: EncodeTarget): JsonObject {
  const { role = 'user', content, tool_calls: list, tool_call_id: id } = message;
  const calls = objectsOf(list);
  const parts = partsOf(content, target);
  return {
    role: String(role).toUpperCase(),
    // The API rejects an empty text beside calls.
    content: calls.length > 0 && parts.length === 0 ? null : parts,
    ...(calls.length === 0
      ? {}
      : {
          toolCalls: calls.map((call) => {
            const { name, arguments: text } = isObject(call['function']) ? call['function'] : {};
            return { type: 'FUNCTION', id: call['id'] ?? '', name: name ?? '', arguments: text ?? '{}' };
          }),
        }),
    ...(typeof id === 'string' ? { toolCallId: id } : {}),
  };
}

function partsOf(content: JsonValue | undefined, target: EncodeTarget): readonly JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'TEXT', text: content }];
  return objectsOf(content).flatMap((part) => partOf(part, target));
}

function partOf(part: JsonObject, target: EncodeTarget): readonly JsonObject[] {
  const { text, image_url: image, file } = part;
  if (typeof text === 'string') return [{ type: 'TEXT', text }];
  if (isObject(image)) return [imagePart(image)];
  const data = isObject(file) ? file['file_data'] : undefined;
  if (typeof data === 'string') return [{ type: 'DOCUMENT', documentUrl: { url: data } }];
  return noPart(part, target);
}

function choiceOf(choice: JsonValue): JsonObject {
  if (!isObject(choice)) return { type: String(choice).toUpperCase() };
  const { name } = isObject(choice['function']) ? choice['function'] : {};
  return { type: 'FUNCTION', name: name ?? '' };
}

function formatOf({ type, json_schema: holder }: JsonObject): JsonObject {
  if (type !== 'json_schema' || !isObject(holder)) return { type: String(type).toUpperCase() };
  const { name, description, schema, strict } = holder;
  return {
    type: 'JSON_SCHEMA',
    jsonSchema: {
      name: name ?? 'answer',
      ...(typeof description === 'string' ? { description } : {}),
      schema: schema ?? {},
      ...(typeof strict === 'boolean' ? { isStrict: strict } : {}),
    },
  };
}

/** Returns a whole reply as the body of chat completions: its choices, and what was used. */
export function genericWhole({ choices, usage }: JsonObject): JsonObject {
  return {
    choices: objectsOf(choices).map((choice) => {
      const calls = toolCallsOf(choice).map(({ id, name, arguments: input }) => ({
        id: id ?? '',
        type: 'function',
        function: { name: name ?? '', arguments: input ?? '' },
      }));
      return {
        index: choice['index'] ?? 0,
        message: {
          role: 'assistant',
          ...messageMembers(choice),
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        finish_reason: finishOf(choice['finishReason']) ?? 'stop',
      };
    }),
    ...usageOf(usage),
  };
}

/** Decodes a stream: each chunk is a choice, or has the usage. A call begins with its id. A chunk without one continues the last call. */
export function genericReply(): DialectReply {
  const ids: string[] = [];
  return {
    chunks(piece) {
      const calls = toolCallsOf(piece).map(({ id, name, arguments: input }) => {
        const begins = typeof id === 'string' && id !== '' && id !== ids.at(-1);
        if (begins) ids.push(id);
        return {
          index: Math.max(0, ids.length - 1),
          ...(begins ? { id, type: 'function' } : {}),
          function: { ...(begins ? { name: name ?? '' } : {}), arguments: input ?? '' },
        };
      });
      const delta = { ...messageMembers(piece), ...(calls.length === 0 ? {} : { tool_calls: calls }) };
      const finish = finishOf(piece['finishReason']) ?? null;
      const says = Object.keys(delta).length > 0 || finish !== null;
      return [
        {
          choices: says ? [{ index: piece['index'] ?? 0, delta, finish_reason: finish }] : [],
          ...usageOf(piece['usage']),
        },
      ];
    },
  };
}

function toolCallsOf({ message }: JsonObject): readonly JsonObject[] {
  return isObject(message) ? objectsOf(message['toolCalls']) : [];
}

/** Returns the text, reasoning and refusal of a choice, as far as there are any. */
function messageMembers({ message }: JsonObject): JsonObject {
  const { content, reasoningContent: thought, refusal, annotations } = isObject(message) ? message : {};
  const cited = citationsOf(annotations);
  const text = objectsOf(content)
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
  return {
    ...(text === '' ? {} : { content: text }),
    ...(typeof thought === 'string' && thought !== '' ? { reasoning_content: thought } : {}),
    ...(typeof refusal === 'string' && refusal !== '' ? { refusal } : {}),
    ...(cited.length === 0 ? {} : { annotations: cited }),
  };
}

/** Pages that an answer cites: oci-generativeaiinference 2.142.0, lib/model/annotation.d.ts and url-citation.d.ts. */
function citationsOf(annotations: JsonValue | undefined): readonly JsonObject[] {
  return objectsOf(annotations).flatMap(({ urlCitation: cited }) => {
    if (!isObject(cited)) return [];
    const names = { startIndex: 'start_index', endIndex: 'end_index', title: 'title', url: 'url' };
    return [{ type: 'url_citation', url_citation: renamed(cited, names) }];
  });
}

/** Finish reasons of the makers, in lower case because their case differs. */
const reasons = lookupTable<string>({
  stop: 'stop',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
});

function finishOf(word: JsonValue | undefined): string | undefined {
  return typeof word === 'string' ? (reasons[word.toLowerCase()] ?? 'stop') : undefined;
}
