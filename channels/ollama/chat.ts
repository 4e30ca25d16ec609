/** Codec for Ollama's chat API, `/api/chat`. */
import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, parseObject, type JsonObject, type JsonValue } from 'sluice';
import type { EncodeTarget } from 'sluice/channel-kit';
import { chatDialect, knownMembers, objectsOf } from '../_kit/dialect/chat-dialect.ts';

/** Name of the format. */
export const chatFormat = 'ollama-chat';

/** Settings of chat completions that stand among the options, by their names there. */
const optionNames: Readonly<Record<string, string>> = {
  max_tokens: 'num_predict',
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  seed: 'seed',
  stop: 'stop',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  repeat_penalty: 'repeat_penalty',
  num_ctx: 'num_ctx',
};

/** Members of Ollama's API. The last two are its own, which clients may send. */
const members: ReadonlySet<string> = new Set(['model', 'messages', 'tools', 'stream', 'keep_alive', 'think']);
const read: ReadonlySet<string> = new Set([
  ...members,
  ...Object.keys(optionNames),
  'options',
  'response_format',
  'reasoning_effort',
  'tool_choice',
  'format',
]);

/**
 * Ollama's own chat: settings in `options`, images beside the text, arguments of calls as objects, thinking apart, and how long the model
 * stays loaded. https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
 * https://docs.ollama.com/capabilities/thinking https://docs.ollama.com/capabilities/tool-calling
 */
export const chat = chatDialect({
  format: chatFormat,
  streamsAsJson: true,
  path: () => '/api/chat',
  request({ stream_options: _options, ...body }, target) {
    const { tools, tool_choice: choice, messages, stream, ...rest } = knownMembers(body, read, target.drop);
    const isForced = choice !== undefined && choice !== 'auto' && choice !== 'none';
    if (isForced) target.drop('tool_choice');
    const format = rest['format'] ?? formatOf(rest['response_format']);
    const think = rest['think'] ?? thinkOf(rest['reasoning_effort'], target.model);
    const options = optionsOf(rest);
    return {
      model: target.model,
      messages: messagesOf(messages, target),
      stream: stream === true,
      ...(tools === undefined || choice === 'none' ? {} : { tools }),
      ...(format === undefined ? {} : { format }),
      ...(think === undefined ? {} : { think }),
      ...(Object.keys(options).length === 0 ? {} : { options }),
      ...(rest['keep_alive'] === undefined ? {} : { keep_alive: rest['keep_alive'] }),
    };
  },
  reply() {
    let calls = 0;
    return {
      chunks(piece) {
        const { delta, called } = deltaOf(piece, calls);
        calls += called;
        return [chunkOf(piece, delta)];
      },
    };
  },
  whole(body) {
    const { delta } = deltaOf(body, 0);
    const [choice] = objectsOf(chunkOf({ ...body, done: true }, delta)['choices']);
    const { finish_reason: finish } = choice ?? {};
    return {
      ...chunkOf(body, delta),
      choices: [{ index: 0, message: { role: 'assistant', ...delta }, finish_reason: finish ?? 'stop' }],
    };
  },
});

function optionsOf(body: JsonObject): JsonObject {
  const options: { [name: string]: JsonValue } = {};
  for (const [name, there] of Object.entries(optionNames)) {
    const value = body[name];
    if (value !== undefined && value !== null)
      options[there] = typeof value === 'string' && name === 'stop' ? [value] : value;
  }
  // A client that names the options itself has the last word.
  return isObject(body['options']) ? { ...options, ...body['options'] } : options;
}

function formatOf(format: JsonValue | undefined): JsonValue | undefined {
  if (!isObject(format)) return undefined;
  if (format['type'] === 'json_object') return 'json';
  const { json_schema: holder } = format;
  return format['type'] === 'json_schema' && isObject(holder) ? (holder['schema'] ?? 'json') : undefined;
}

/** Returns the value of `think`: an effort for the one family that has efforts, otherwise a boolean. */
function thinkOf(effort: JsonValue | undefined, model: string): JsonValue | undefined {
  if (typeof effort !== 'string') return undefined;
  if (model.includes('gpt-oss')) return effort;
  return effort !== 'none';
}

function messagesOf(messages: JsonValue | undefined, target: EncodeTarget): readonly JsonObject[] {
  /** Names of tools by the id of the call, because results must name their tool. */
  const names = new Map<string, string>();
  return objectsOf(messages).map((message) => {
    const { role, tool_calls: calls, tool_call_id: id, reasoning_content: thinking } = message;
    const { text, images } = contentOf(message['content'], target);
    for (const call of objectsOf(calls)) {
      const { name } = functionOf(call);
      if (typeof call['id'] === 'string') names.set(call['id'], name);
    }
    const tool = typeof id === 'string' ? names.get(id) : undefined;
    return {
      role: role === 'developer' ? 'system' : (role ?? 'user'),
      content: text,
      ...(images.length === 0 ? {} : { images }),
      ...(typeof thinking === 'string' && thinking !== '' ? { thinking } : {}),
      ...(objectsOf(calls).length === 0
        ? {}
        : {
            tool_calls: objectsOf(calls).map((call, index) => ({
              type: 'function',
              function: { index, ...functionOf(call) },
            })),
          }),
      ...(tool === undefined ? {} : { tool_name: tool }),
    };
  });
}

function functionOf(call: JsonObject): { readonly name: string; readonly arguments: JsonObject } {
  const own = isObject(call['function']) ? call['function'] : {};
  const { name, arguments: text } = own;
  return {
    name: typeof name === 'string' ? name : '',
    arguments: typeof text === 'string' ? (parseObject(text) ?? {}) : {},
  };
}

function contentOf(
  content: JsonValue | undefined,
  { unsupported, drop }: EncodeTarget,
): { readonly text: string; readonly images: readonly string[] } {
  if (typeof content === 'string') return { text: content, images: [] };
  const texts: string[] = [];
  const images: string[] = [];
  for (const part of objectsOf(content)) {
    const { text, image_url: image } = part;
    const url = isObject(image) ? image['url'] : undefined;
    const bytes = typeof url === 'string' ? /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1] : undefined;
    if (typeof text === 'string') texts.push(text);
    else if (bytes !== undefined) images.push(bytes);
    else if (unsupported === 'refuse')
      throw new GatewayError(
        'unsupported_value',
        `messages: content of type ${String(part['type'])} cannot be sent to this channel.`,
        {
          param: 'messages',
        },
      );
    else drop('messages', 'content');
  }
  return { text: texts.join('\n'), images };
}

/** Converts a chunk or a whole response into a delta. `before`: number of calls that the response has made so far. */
function deltaOf(piece: JsonObject, before: number): { readonly delta: JsonObject; readonly called: number } {
  const { content, thinking, tool_calls: list } = isObject(piece['message']) ? piece['message'] : {};
  const calls = objectsOf(list).map((call, index) => {
    const { name, arguments: input } = isObject(call['function']) ? call['function'] : {};
    return {
      index: before + index,
      // The provider numbers none.
      id: `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`,
      type: 'function',
      function: { name: name ?? '', arguments: JSON.stringify(input ?? {}) },
    };
  });
  const delta = {
    content: typeof content === 'string' ? content : '',
    ...(typeof thinking === 'string' && thinking !== '' ? { reasoning_content: thinking } : {}),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return { delta, called: calls.length };
}

function chunkOf(piece: JsonObject, delta: JsonObject): JsonObject {
  const { model, created_at: at, done, done_reason: reason } = piece;
  const created = typeof at === 'string' ? Math.floor(Date.parse(at) / 1000) : Number.NaN;
  const { prompt_eval_count: input, eval_count: output } = piece;
  return {
    model: model ?? '',
    ...(Number.isNaN(created) ? {} : { created }),
    choices: [
      { index: 0, delta, finish_reason: done === true ? (reason === 'length' ? 'length' : 'stop') : null },
    ],
    ...(typeof output === 'number'
      ? { usage: { prompt_tokens: typeof input === 'number' ? input : 0, completion_tokens: output } }
      : {}),
  };
}
