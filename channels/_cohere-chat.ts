import type { JsonObject, JsonValue } from 'sluice';
import { cannotCarry, isObject, upstreamError, type EncodeTarget, wordTable } from 'sluice/internal';
import { chatDialect, knownMembers, objectsOf, type DialectReply } from './_chat-dialect.ts';

/** The name under which the channel speaks Cohere's own words. */
export const chatFormat = 'cohere-chat';

/** Members of chat completions by their names here; those of the second half are Cohere's own, of which clients of chat completions may know. */
const names: Readonly<Record<string, string>> = {
  max_tokens: 'max_tokens',
  temperature: 'temperature',
  top_p: 'p',
  top_k: 'k',
  seed: 'seed',
  stop: 'stop_sequences',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  tools: 'tools',
  documents: 'documents',
  citation_options: 'citation_options',
  safety_mode: 'safety_mode',
  strict_tools: 'strict_tools',
  thinking: 'thinking',
  priority: 'priority',
};
const read: ReadonlySet<string> = new Set([
  ...Object.keys(names),
  'model',
  'messages',
  'stream',
  'tool_choice',
  'response_format',
]);

/**
 * Cohere's chat, version 2: documents and citations, the plan before calls, thinking, safety modes.
 * https://docs.cohere.com/reference/chat https://docs.cohere.com/reference/chat-stream https://docs.cohere.com/v2/docs/streaming
 */
export const chat = chatDialect({
  format: chatFormat,
  path: () => '/v2/chat',
  request({ stream_options: _options, reasoning_effort: effort, ...body }, target) {
    const known = knownMembers(body, read, target.lose);
    const texts: JsonObject[] = [];
    const messages = objectsOf(known['messages']).map((message) => messageOf(message, texts, target));
    const settings = Object.fromEntries(
      Object.entries(names).flatMap(([name, there]) =>
        known[name] === undefined || known[name] === null ? [] : [[there, known[name]]],
      ),
    );
    const { stop_sequences: stop, documents } = settings;
    const choice = choiceOf(known['tool_choice'], target);
    const format = formatOf(known['response_format']);
    const given = [...(Array.isArray(documents) ? (documents as readonly JsonValue[]) : []), ...texts];
    return {
      model: target.model,
      messages,
      stream: known['stream'] === true,
      ...settings,
      ...(typeof stop === 'string' ? { stop_sequences: [stop] } : {}),
      ...(given.length === 0 ? {} : { documents: given }),
      ...(choice === undefined ? {} : { tool_choice: choice }),
      ...(format === undefined ? {} : { response_format: format }),
      ...(typeof effort === 'string' && settings['thinking'] === undefined
        ? { thinking: { type: effort === 'none' ? 'disabled' : 'enabled' } }
        : {}),
    };
  },
  reply: () => new CohereReply(),
  whole(body) {
    const { message, finish_reason: finish, id, usage } = body;
    const said = isObject(message) ? message : {};
    const { text, thinking } = wordsOf(said['content']);
    const reasoning = [thinking, said['tool_plan']].filter((one) => typeof one === 'string').join('');
    return {
      id: id ?? '',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: text,
            ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
            ...(Array.isArray(said['tool_calls']) ? { tool_calls: said['tool_calls'] } : {}),
            ...(Array.isArray(said['citations'])
              ? { annotations: objectsOf(said['citations']).map(annotationOf) }
              : {}),
          },
          finish_reason: finishOf(finish, body),
        },
      ],
      ...usageOf(usage),
    };
  },
});

/** One stream: what begins and ends a block says nothing that its pieces do not. */
class CohereReply implements DialectReply {
  #id = '';
  #calls = -1;

  chunks(piece: JsonObject, event: string | undefined): readonly JsonObject[] {
    const { type = event, id } = piece;
    if (typeof id === 'string' && id !== '') this.#id = id;
    const delta = isObject(piece['delta']) ? piece['delta'] : {};
    const message = isObject(delta['message']) ? delta['message'] : {};
    switch (type) {
      case 'message-start':
        return [this.#chunk({ role: 'assistant', content: '' })];
      case 'content-start':
      case 'content-delta': {
        const { text, thinking } = wordsOf(message['content']);
        return [
          this.#chunk({
            ...(text === '' ? {} : { content: text }),
            ...(thinking === '' ? {} : { reasoning_content: thinking }),
          }),
        ];
      }
      case 'tool-plan-delta':
        return [this.#chunk({ reasoning_content: message['tool_plan'] ?? '' })];
      case 'tool-call-start':
        this.#calls += 1;
        return this.#call(message['tool_calls']);
      case 'tool-call-delta':
        return this.#call(message['tool_calls']);
      case 'citation-start': {
        const list = Array.isArray(message['citations'])
          ? objectsOf(message['citations'])
          : objectsOf([message['citations']]);
        return [this.#chunk({ annotations: list.map(annotationOf) })];
      }
      case 'message-end':
        return [{ ...this.#chunk({}, finishOf(delta['finish_reason'], delta)), ...usageOf(delta['usage']) }];
      default:
        return [];
    }
  }

  #call(call: JsonValue | undefined): readonly JsonObject[] {
    return isObject(call)
      ? [this.#chunk({ tool_calls: [{ ...call, index: Math.max(0, this.#calls) }] })]
      : [];
  }

  #chunk(delta: JsonObject, finish: string | null = null): JsonObject {
    return { id: this.#id, choices: [{ index: 0, delta, finish_reason: finish }] };
  }
}

const reasons = wordTable<string>({
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop_sequence',
  MAX_TOKENS: 'length',
  TOOL_CALL: 'tool_calls',
});

/** Why it ended, in the words of chat completions. Throws where it broke. */
function finishOf(word: JsonValue | undefined, beside: JsonObject): string {
  if (word === 'ERROR' || word === 'TIMEOUT')
    throw upstreamError(
      200,
      JSON.stringify({ message: beside['error'] ?? 'The upstream broke off the answer.' }),
    );
  return reasons[String(word)] ?? 'stop';
}

/** Text and thinking of content: a string, one part, or a list of them. */
function wordsOf(content: JsonValue | undefined): { readonly text: string; readonly thinking: string } {
  if (typeof content === 'string') return { text: content, thinking: '' };
  let text = '';
  let thinking = '';
  for (const part of Array.isArray(content) ? objectsOf(content) : objectsOf([content])) {
    if (typeof part['text'] === 'string') text += part['text'];
    if (typeof part['thinking'] === 'string') thinking += part['thinking'];
  }
  return { text, thinking };
}

/** What is billed, and what of it came from a cache. https://github.com/cohere-ai/cohere-typescript (src/api/types/Usage.ts) */
function usageOf(usage: JsonValue | undefined): JsonObject {
  if (!isObject(usage)) return {};
  const { billed_units: billed, tokens, cached_tokens: cached } = usage;
  const counts = isObject(billed) ? billed : isObject(tokens) ? tokens : undefined;
  if (counts === undefined) return {};
  const input = typeof counts['input_tokens'] === 'number' ? counts['input_tokens'] : 0;
  return {
    usage: {
      prompt_tokens: input,
      completion_tokens: counts['output_tokens'] ?? 0,
      ...(typeof cached === 'number'
        ? { prompt_tokens_details: { cached_tokens: Math.min(cached, input) } }
        : {}),
    },
  };
}

/** A citation with all that Cohere says of its sources; what it is in neutral words is the first of them. */
function annotationOf({ start, end, text, sources, type: _type, ...rest }: JsonObject): JsonObject {
  const [source] = objectsOf(sources);
  const document = isObject(source?.['document']) ? source['document'] : {};
  const { url, title } = document;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: start ?? 0,
      end_index: end ?? 0,
      ...(typeof title === 'string' ? { title } : {}),
      ...(typeof url === 'string' ? { url } : {}),
    },
    text: text ?? '',
    sources: sources ?? [],
    ...rest,
  };
}

/** It knows two words. A tool by name is one that must be called: which, is left to the model. */
function choiceOf(choice: JsonValue | undefined, { lose }: EncodeTarget): string | undefined {
  if (choice === undefined || choice === null || choice === 'auto') return undefined;
  if (choice === 'none') return 'NONE';
  if (choice !== 'required') lose('tool_choice.function');
  return 'REQUIRED';
}

function formatOf(format: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(format) || format['type'] === 'text') return undefined;
  const { json_schema: holder } = format;
  const schema = isObject(holder) ? holder['schema'] : undefined;
  return { type: 'json_object', ...(schema === undefined ? {} : { json_schema: schema }) };
}

/** One message; a text that came as a file is put among the documents. */
function messageOf(message: JsonObject, texts: JsonObject[], target: EncodeTarget): JsonObject {
  const { role, content, tool_calls: calls, tool_call_id: id, reasoning_content: plan } = message;
  const own = {
    role: role === 'developer' ? 'system' : (role ?? 'user'),
    ...(content === null || content === undefined ? {} : { content: contentOf(content, texts, target) }),
  };
  if (role === 'tool') return { ...own, tool_call_id: id ?? '' };
  if (objectsOf(calls).length === 0) return own;
  const { content: said, ...rest } = own;
  return {
    ...rest,
    ...(said === undefined || said === '' ? {} : { content: said }),
    tool_calls: calls,
    ...(typeof plan === 'string' && plan !== '' ? { tool_plan: plan } : {}),
  };
}

function contentOf(content: JsonValue, texts: JsonObject[], { unsupported, lose }: EncodeTarget): JsonValue {
  if (!Array.isArray(content)) return content;
  return objectsOf(content).flatMap((part) => {
    if (part['type'] === 'text' || part['type'] === 'image_url') return [part];
    const file = isObject(part['file']) ? part['file'] : {};
    const [, bytes] = /^data:text\/[^,]*;base64,(.*)$/s.exec(String(file['file_data'])) ?? [];
    if (bytes !== undefined) {
      const { filename } = file;
      texts.push({
        data: {
          ...(typeof filename === 'string' ? { title: filename } : {}),
          text: Buffer.from(bytes, 'base64').toString('utf8'),
        },
      });
      return [];
    }
    if (unsupported === 'refuse')
      throw cannotCarry('messages', `content of type ${String(part['type'])}`, 'cohere');
    lose('messages', 'content');
    return [];
  });
}
