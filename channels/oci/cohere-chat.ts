/** Cohere's older chat at OCI (`CohereChatRequest`): requests and replies. */
import { randomUUID } from 'node:crypto';
import { isObject, parseObject, type JsonObject, type JsonValue } from 'sluice';
import { unsupportedContent, upstreamError, lookupTable, type EncodeTarget } from 'sluice/channel-kit';
import { objectsOf, type DialectReply } from '../_kit/dialect/chat-dialect.ts';
import { beginChat, commonSettings, stopsOf, usageOf } from './chat.ts';

/*
 * Request and response types of Oracle's native chat for Cohere's Command models: one message, and the chat history before it.
 * https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/datatypes/CohereChatRequest
 * https://github.com/oracle/langchain-oracle/blob/main/libs/oci/langchain_oci/chat_models/providers/cohere.py
 */

/** Members of chat completions by their names here; the last three are known to clients that name Cohere's own. */
const settings: Readonly<Record<string, string>> = {
  ...commonSettings,
  max_completion_tokens: 'maxTokens',
  safety_mode: 'safetyMode',
  citation_quality: 'citationQuality',
  prompt_truncation: 'promptTruncation',
};
const others = ['messages', 'tools', 'tool_choice', 'response_format', 'stop', 'documents'];

/** Returns a body of chat completions as the `chatRequest` of Oracle's for Cohere. */
export function cohereRequest(body: JsonObject, target: EncodeTarget): JsonObject {
  const { known, begun } = beginChat(body, { settings, others }, target);
  const { messages, tools, tool_choice: choice, response_format: format, documents } = known;
  const stop = stopsOf(known);
  const given: JsonValue[] = Array.isArray(documents) ? [...(documents as readonly JsonValue[])] : [];
  const talk = talkOf(objectsOf(messages), given, target);
  // The model decides whether to call a tool, so that other choices are dropped.
  if (choice !== undefined && choice !== null && choice !== 'auto' && choice !== 'none')
    target.drop('tool_choice');
  return {
    apiFormat: 'COHERE',
    ...talk,
    ...begun,
    ...(stop === undefined ? {} : { stopSequences: stop }),
    ...(given.length === 0 ? {} : { documents: given }),
    ...(objectsOf(tools).length === 0 || choice === 'none' ? {} : { tools: objectsOf(tools).map(toolOf) }),
    ...cohereFormat(format),
  };
}

/** Returns the form of an answer, where that is not a text. */
export function cohereFormat(format: JsonValue | undefined): JsonObject {
  if (!isObject(format) || format['type'] === 'text') return {};
  const { schema } = isObject(format['json_schema']) ? format['json_schema'] : {};
  return { responseFormat: { type: 'JSON_OBJECT', ...(schema === undefined ? {} : { schema }) } };
}

/** Returns the instructions, the history, and the current input: a message of the user, or tool results. */
function talkOf(messages: readonly JsonObject[], given: JsonValue[], target: EncodeTarget): JsonObject {
  const isInstruction = ({ role }: JsonObject): boolean => role === 'system' || role === 'developer';
  const preamble = messages.filter(isInstruction).map(({ content }) => textOf(content, given, target));
  const conversation = messages.filter((message) => !isInstruction(message));
  const calls = new Map(
    conversation
      .flatMap((message) => objectsOf(message['tool_calls']))
      .map((call) => [String(call['id']), callOf(call)]),
  );
  const results = (from: number, to: number): readonly JsonObject[] =>
    conversation.slice(from, to).map(({ tool_call_id: id, content }) => ({
      call: calls.get(String(id)) ?? { name: '', parameters: {} },
      outputs: [{ output: textOf(content, given, target) }],
    }));
  const turns: JsonObject[] = [];
  let now: JsonObject = { message: '' };
  for (let at = 0; at < conversation.length; at += 1) {
    const { role, content, tool_calls: made } = conversation[at] ?? {};
    const isLast = at === conversation.length - 1;
    if (role === 'tool') {
      let end = at;
      while (conversation[end]?.['role'] === 'tool') end += 1;
      const toolResults = results(at, end);
      at = end - 1;
      if (end === conversation.length) now = { message: '', toolResults };
      else {
        turns.push({ role: 'TOOL', toolResults });
        // After results it must be the model that speaks.
        if (conversation[end]?.['role'] === 'user') turns.push({ role: 'CHATBOT', message: 'OK.' });
      }
    } else if (role === 'assistant') {
      const list = objectsOf(made).map(callOf);
      const message = textOf(content, given, target);
      turns.push({
        role: 'CHATBOT',
        // Must not be empty.
        message: message === '' ? ' ' : message,
        ...(list.length === 0 ? {} : { toolCalls: list }),
      });
    } else {
      const message = textOf(content, given, target);
      if (isLast) now = { message };
      else turns.push({ role: 'USER', message });
    }
  }
  return {
    ...now,
    ...(turns.length === 0 ? {} : { chatHistory: turns }),
    ...(preamble.length === 0 ? {} : { preambleOverride: preamble.join('\n') }),
  };
}

function callOf({ function: own }: JsonObject): JsonObject {
  const { name, arguments: text } = isObject(own) ? own : {};
  return {
    name: name ?? '',
    parameters: typeof text === 'string' ? (parseObject(text) ?? {}) : {},
  };
}

/** Returns the text of a message; a text that came as a file is put among the documents. */
function textOf(content: JsonValue | undefined, given: JsonValue[], target: EncodeTarget): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .flatMap((part) => {
      const { type, text, file } = part;
      if (typeof text === 'string') return [text];
      const { file_data: data, filename } = isObject(file) ? file : {};
      const [, bytes] = /^data:text\/[^,]*;base64,(.*)$/s.exec(String(data)) ?? [];
      if (bytes !== undefined)
        given.push({
          ...(typeof filename === 'string' ? { title: filename } : {}),
          text: Buffer.from(bytes, 'base64').toString('utf8'),
        });
      else if (target.unsupported === 'refuse')
        throw unsupportedContent('messages', `content of type ${String(type)}`, 'oci');
      else target.drop('messages', 'content');
      return [];
    })
    .join('\n');
}

/** The types of parameters, which are named as in Python: https://docs.cohere.com/v1/docs/parameter-types-in-tool-use */
const types = lookupTable<string>({
  string: 'str',
  number: 'float',
  integer: 'int',
  boolean: 'bool',
  array: 'list',
  object: 'dict',
});

/** Returns a tool with a flat list of parameters. The rest of each schema goes into the description, where the model reads it. */
function toolOf({ function: own }: JsonObject): JsonObject {
  const { name, description, parameters } = isObject(own) ? own : {};
  const { properties, required } = isObject(parameters) ? parameters : {};
  const must = new Set(Array.isArray(required) ? (required as readonly JsonValue[]) : []);
  return {
    name: name ?? '',
    description: typeof description === 'string' ? description : String(name ?? ''),
    parameterDefinitions: Object.fromEntries(
      Object.entries(isObject(properties) ? properties : {}).map(([parameter, value]) => {
        const { type, description: about, ...rest } = isObject(value) ? value : {};
        const schema = Object.keys(rest).length === 0 ? '' : `JSON schema: ${JSON.stringify(value)}`;
        const parameterDescription = [about, schema]
          .filter((one) => typeof one === 'string' && one !== '')
          .join(' ');
        return [
          parameter,
          {
            type: types[String(type)] ?? 'Any',
            ...(parameterDescription === '' ? {} : { description: parameterDescription }),
            isRequired: must.has(parameter),
          },
        ];
      }),
    ),
  };
}

/** Returns a whole reply as the body of chat completions. */
export function cohereWhole(body: JsonObject): JsonObject {
  const { text, citations } = body;
  const calls = calledIn(body, 0).map(({ index: _index, ...call }) => call);
  const list = objectsOf(citations).map((one) => annotationOf(one));
  return {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text ?? '',
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
          ...(list.length === 0 ? {} : { annotations: list }),
        },
        finish_reason: finishOf(body, calls.length > 0) ?? 'stop',
      },
    ],
    ...usageOf(body['usage']),
  };
}

/** Decodes a stream. The last chunk repeats the whole text and the calls, which are used only if they have not been received before. */
export function cohereReply(): DialectReply {
  let hasText = false;
  let calls = 0;
  return {
    chunks(piece) {
      const isEnd = typeof piece['finishReason'] === 'string';
      const text = isEnd && hasText ? '' : piece['text'];
      if (typeof text === 'string' && text !== '') hasText = true;
      const called = isEnd && calls > 0 ? [] : calledIn(piece, calls);
      calls += called.length;
      const list = objectsOf(piece['citations']).map(annotationOf);
      const delta = {
        ...(typeof text === 'string' && text !== '' ? { content: text } : {}),
        ...(called.length === 0 ? {} : { tool_calls: called }),
        ...(list.length === 0 ? {} : { annotations: list }),
      };
      const finish = finishOf(piece, calls > 0) ?? null;
      return [{ choices: [{ index: 0, delta, finish_reason: finish }], ...usageOf(piece['usage']) }];
    },
  };
}

/** Returns the calls of a piece, the first of them with this number. The provider gives them no ids. */
function calledIn(piece: JsonObject, first: number): readonly JsonObject[] {
  return objectsOf(piece['toolCalls']).map(({ name, parameters }, index) => ({
    index: first + index,
    id: `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`,
    type: 'function',
    function: { name: name ?? '', arguments: JSON.stringify(parameters ?? {}) },
  }));
}

const reasons = lookupTable<string>({
  COMPLETE: 'stop',
  MAX_TOKENS: 'length',
  ERROR_TOXIC: 'content_filter',
  TOOL_CALL: 'tool_calls',
});

/** Returns why the answer ended; undefined while it goes on. Throws when it failed. */
export function finishOf(piece: JsonObject, calls: boolean): string | undefined {
  const { finishReason: word, errorMessage: message } = piece;
  if (typeof word !== 'string') return undefined;
  if (word === 'ERROR' || word === 'ERROR_LIMIT' || word === 'USER_CANCEL')
    throw upstreamError(
      200,
      JSON.stringify({ message: message ?? `The upstream broke off the response (${word}).` }),
    );
  const reason = reasons[word] ?? 'stop';
  return calls && reason === 'stop' ? 'tool_calls' : reason;
}

/** Returns a citation with the documents that it names. */
export function annotationOf({ start, end, ...rest }: JsonObject): JsonObject {
  return {
    type: 'url_citation',
    url_citation: { start_index: start ?? 0, end_index: end ?? 0 },
    ...rest,
  };
}
