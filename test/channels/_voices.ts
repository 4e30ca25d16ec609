import { formatVoice, type SeenRequest, type Voice } from 'sluice/testing';

/** Any JSON object. */
export type Json = Record<string, unknown>;

/** Conversion between a provider's own format and chat completions, as the provider's documentation shows it. */
export interface ProviderConversion {
  /** Converts a request to the equivalent chat completions body. */
  decodeRequest(body: Json, request: SeenRequest): Json;
  /** Converts a chat completions reply to the provider's. */
  whole(body: Json): Json;
  /** Converts each chat completions chunk to text of the provider's stream. `end` returns the rest after the last chunk. */
  stream(): { readonly chunk: (chunk: Json) => string; readonly end: () => string };
  readonly error?: (status: number, message: string) => string;
}

const plain = await formatVoice('chat-completions');

/** Returns the dialect of a provider with a format of its own, built on chat completions. */
export function providerVoice({ decodeRequest, whole, stream, error }: ProviderConversion): Voice {
  const inChatCompletions = (request: SeenRequest): SeenRequest => {
    const body = decodeRequest(JSON.parse(request.body.toString()) as Json, request);
    return {
      ...request,
      body: Buffer.from(JSON.stringify({ stream_options: { include_usage: true }, ...body })),
    };
  };
  return {
    ...plain,
    hear: (request) => plain.hear(inChatCompletions(request)),
    whole: (events, request) =>
      JSON.stringify(whole(JSON.parse(plain.whole(events, inChatCompletions(request))) as Json)),
    stream(events, request) {
      const { pieces, end } = plain.stream(events, inChatCompletions(request));
      const own = stream();
      const rewritePiece = (piece: string | Buffer): string =>
        framesOf(piece.toString()).map(own.chunk).join('');
      return {
        pieces: pieces.map(rewritePiece).filter((piece) => piece !== ''),
        end: rewritePiece(end) + own.end(),
      };
    },
    ...(error === undefined ? {} : { error }),
  };
}

function framesOf(stream: string): readonly Json[] {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data) as Json);
}

const responses = await formatVoice('responses');

/** The Agent API of Perplexity: Responses with a preset in place of a model, and the schema of an answer where chat completions have it. */
export const agentVoice: Voice = {
  ...responses,
  hear: (request) => responses.hear(inResponses(request)),
  whole: (events, request) => responses.whole(events, inResponses(request)),
  stream: (events, request) => responses.stream(events, inResponses(request)),
};

function inResponses(request: SeenRequest): SeenRequest {
  const { response_format: format, preset, ...body } = JSON.parse(request.body.toString()) as Json;
  const { type, json_schema: schema } = (format ?? {}) as {
    readonly type?: string;
    readonly json_schema?: Json;
  };
  const text = format === undefined ? {} : { text: { format: { type, ...schema } } };
  return { ...request, body: Buffer.from(JSON.stringify({ model: preset, ...body, ...text })) };
}

/** watsonx.ai: no last word, an event's name and number on each piece, and its own names of the model and the choice. */
export const watsonxVoice = providerVoice({
  decodeRequest: ({ model_id, tool_choice_option, ...body }, { url }) => ({
    ...body,
    model: model_id,
    stream: url.includes('/text/chat_stream?'),
    ...(tool_choice_option === undefined ? {} : { tool_choice: tool_choice_option }),
  }),
  whole: ({ object: _object, model, ...body }) => ({
    ...body,
    model_id: model,
    model_version: '1.0.0',
    system: { warnings: [] },
  }),
  stream() {
    let id = 0;
    return {
      chunk: ({ object: _object, model, ...chunk }) =>
        `id: ${++id}\nevent: message\ndata: ${JSON.stringify({ ...chunk, model_id: model, created_at: '2025-02-11T22:12:07Z' })}\n\n`,
      end: () => '',
    };
  },
  error: (status, message) =>
    JSON.stringify({ errors: [{ code: 'some_code', message }], trace: 't', status_code: status }),
});

const objects = (list: unknown): readonly Json[] => (Array.isArray(list) ? (list as readonly Json[]) : []);

/** Ollama's own words, in both directions: lines of JSON, arguments as objects, images beside the text, settings among the options. */
export const ollamaVoice = providerVoice({
  decodeRequest({ messages, options, format, think, ...body }) {
    const { num_predict, ...settings } = (options ?? {}) as Json;
    let calls = 0;
    let results = 0;
    return {
      ...body,
      ...settings,
      ...(num_predict === undefined ? {} : { max_tokens: num_predict }),
      ...(think === undefined ? {} : { reasoning_effort: think === true ? 'medium' : 'none' }),
      ...(format === undefined
        ? {}
        : { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: format } } }),
      messages: objects(messages).map(({ content, images, tool_calls, tool_name, ...message }) => ({
        ...message,
        content: [
          { type: 'text', text: content },
          ...((images ?? []) as readonly string[]).map((data) => ({
            type: 'image_url',
            image_url: { url: `data:image/png;base64,${data}` },
          })),
        ],
        ...(tool_calls === undefined
          ? {}
          : {
              tool_calls: objects(tool_calls).map((call) => {
                const { name, arguments: input } = call['function'] as Json;
                return {
                  id: `call_${calls++}`,
                  type: 'function',
                  function: { name, arguments: JSON.stringify(input) },
                };
              }),
            }),
        ...(tool_name === undefined ? {} : { tool_call_id: `call_${results++}` }),
      })),
    };
  },
  whole(body) {
    const [choice] = objects(body['choices']);
    const { content, reasoning_content, tool_calls } = (choice?.['message'] ?? {}) as Json;
    return {
      model: body['model'],
      created_at: '2024-12-06T00:46:58.265747Z',
      message: {
        role: 'assistant',
        content: content ?? '',
        ...(reasoning_content === undefined ? {} : { thinking: reasoning_content }),
        ...(tool_calls === undefined ? {} : { tool_calls: objects(tool_calls).map(asOllamaCall) }),
      },
      done: true,
      done_reason: choice?.['finish_reason'] === 'length' ? 'length' : 'stop',
      ...ollamaUsage(body['usage'] as Json),
    };
  },
  stream() {
    const called: Json[] = [];
    let reason = 'stop';
    const line = (message: Json, more: Json = { done: false }): string =>
      `${JSON.stringify({ model: 'm', created_at: '2024-12-06T00:46:58.265747Z', message: { role: 'assistant', content: '', ...message }, ...more })}\n`;
    return {
      chunk({ choices, usage }) {
        const [choice] = objects(choices);
        const { content, reasoning_content, tool_calls } = (choice?.['delta'] ?? {}) as Json;
        // The provider has whole calls alone.
        for (const piece of objects(tool_calls)) {
          const index = Number(piece['index']);
          const { name, arguments: input } = piece['function'] as Json;
          const known = (called[index] ??= { function: { name: '', arguments: '' } })['function'] as Json;
          known['name'] = `${String(known['name'])}${String(name ?? '')}`;
          known['arguments'] = `${String(known['arguments'])}${String(input ?? '')}`;
        }
        if (choice?.['finish_reason'] === 'length') reason = 'length';
        if (typeof reasoning_content === 'string') return line({ thinking: reasoning_content });
        if (typeof content === 'string' && content !== '') return line({ content });
        if (usage === undefined || usage === null) return '';
        const calls = called.length === 0 ? '' : line({ tool_calls: called.map(asOllamaCall) });
        return calls + line({}, { done: true, done_reason: reason, ...ollamaUsage(usage as Json) });
      },
      end: () => '',
    };
  },
  error: (_status, message) => JSON.stringify({ error: message }),
});

function asOllamaCall(call: Json): Json {
  const { name, arguments: input } = call['function'] as Json;
  return { function: { name, arguments: JSON.parse(String(input)) as unknown } };
}

function ollamaUsage({ prompt_tokens, completion_tokens }: Json): Json {
  return { prompt_eval_count: prompt_tokens, eval_count: completion_tokens, total_duration: 5_191_566_416 };
}

const cohereReasons: Json = { stop: 'COMPLETE', length: 'MAX_TOKENS', tool_calls: 'TOOL_CALL' };

function cohereUsage({ prompt_tokens, completion_tokens, prompt_tokens_details: details }: Json): Json {
  const tokens = { input_tokens: prompt_tokens, output_tokens: completion_tokens };
  return {
    billed_units: tokens,
    tokens,
    ...(details === undefined ? {} : { cached_tokens: (details as Json)['cached_tokens'] }),
  };
}

/** SAP's orchestration service: chat completions in an envelope, and one event before them. */
export const orchestrationVoice = providerVoice({
  decodeRequest({ config }) {
    const { modules, stream } = config as Json;
    const { prompt, model } = (modules as Json)['prompt_templating'] as Json;
    const { name, params } = model as Json;
    const { template, ...rest } = prompt as Json;
    return {
      ...(params as Json),
      ...rest,
      model: name,
      messages: template,
      stream: ((stream ?? {}) as Json)['enabled'] === true,
    };
  },
  whole: (body) => ({ request_id: 'r1', intermediate_results: { templating: [] }, final_result: body }),
  stream() {
    let begun = false;
    const event = (result: Json): string =>
      `data: ${JSON.stringify({ request_id: 'r1', final_result: result })}\n\n`;
    return {
      chunk(chunk) {
        const templated = begun
          ? ''
          : event({
              id: '',
              object: '',
              created: 0,
              model: '',
              choices: [{ index: 0, delta: { content: '' } }],
            });
        begun = true;
        return templated + event(chunk);
      },
      end: () => 'data: [DONE]\n\n',
    };
  },
  error: (status, message) =>
    JSON.stringify({ error: { request_id: 'r1', code: status, message, location: 'LLM Module' } }),
});

/** Cohere's second version of chat, in both directions: its own names, and events that begin and end every block. */
export const cohereVoice = providerVoice({
  decodeRequest({ p, k, stop_sequences, tool_choice, response_format, thinking, messages, ...body }) {
    const format = response_format as Json | undefined;
    return {
      ...body,
      top_p: p,
      top_k: k,
      ...(stop_sequences === undefined ? {} : { stop: stop_sequences }),
      ...(tool_choice === undefined ? {} : { tool_choice: String(tool_choice).toLowerCase() }),
      ...(thinking === undefined ? {} : { reasoning_effort: 'high' }),
      ...(format === undefined
        ? {}
        : {
            response_format: {
              type: 'json_schema',
              json_schema: { name: 'a', schema: format['json_schema'] },
            },
          }),
      messages: objects(messages).map(({ tool_plan: _plan, ...message }) => message),
    };
  },
  whole(body) {
    const [choice] = objects(body['choices']);
    const { content, reasoning_content, tool_calls } = (choice?.['message'] ?? {}) as Json;
    return {
      id: body['id'],
      finish_reason: cohereReasons[String(choice?.['finish_reason'])],
      message: {
        role: 'assistant',
        content: [
          ...(reasoning_content === undefined ? [] : [{ type: 'thinking', thinking: reasoning_content }]),
          ...(content === null || content === undefined ? [] : [{ type: 'text', text: content }]),
        ],
        ...(tool_calls === undefined ? {} : { tool_calls }),
      },
      usage: cohereUsage(body['usage'] as Json),
    };
  },
  stream() {
    const event = (type: string, more: Json): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const message = (type: string, delta: Json, index = 0): string =>
      event(type, { index, delta: { message: delta } });
    let finish = 'COMPLETE';
    return {
      chunk({ id, choices, usage }) {
        const [choice] = objects(choices);
        const { role, content, reasoning_content, tool_calls } = (choice?.['delta'] ?? {}) as Json;
        let events = '';
        if (role !== undefined)
          events += event('message-start', {
            id,
            delta: { message: { role, content: [], tool_plan: '', tool_calls: [], citations: [] } },
          });
        if (typeof reasoning_content === 'string')
          events += message('content-delta', { content: { thinking: reasoning_content } });
        if (typeof content === 'string' && content !== '')
          events += message('content-delta', { content: { text: content } }, 1);
        for (const { index, ...call } of objects(tool_calls))
          events +=
            call['id'] === undefined
              ? message('tool-call-delta', { tool_calls: call }, Number(index))
              : message('tool-call-start', { tool_calls: call }, Number(index));
        const reason = choice?.['finish_reason'];
        if (typeof reason === 'string') finish = String(cohereReasons[reason]);
        if (usage !== undefined && usage !== null)
          events += event('message-end', {
            id,
            delta: { finish_reason: finish, usage: cohereUsage(usage as Json) },
          });
        return events;
      },
      end: () => '',
    };
  },
  error: (_status, text) => JSON.stringify({ id: 'e1', message: text }),
});

/** A part of Mistral's content as chat completions have it; what was thought stands beside the content. */
function partOfMistral({ type, ...part }: Json): readonly Json[] {
  if (type === 'document_url')
    return [{ type: 'file', file: { file_data: part['document_url'], filename: part['document_name'] } }];
  if (type === 'input_audio') return [{ type, input_audio: { data: part['input_audio'], format: 'wav' } }];
  return type === 'thinking' ? [] : [{ type, ...part }];
}

/** Content with what was thought before it, as Mistral's models that think give it. */
function mistralContent({ reasoning_content: thought, content, ...message }: Json): Json {
  if (typeof thought !== 'string') return { ...message, content };
  return {
    ...message,
    content: [
      { type: 'thinking', thinking: [{ type: 'text', text: thought }], closed: true },
      ...(typeof content === 'string' ? [{ type: 'text', text: content }] : []),
    ],
  };
}

const frame = (json: Json): string => `data: ${JSON.stringify(json)}\n\n`;

/** Mistral's chat: parts of its own, thinking among the content, and usage with the end of every stream. */
export const mistralVoice = providerVoice({
  decodeRequest: ({ messages, random_seed, tool_choice, ...body }) => ({
    ...body,
    ...(random_seed === undefined ? {} : { seed: random_seed }),
    ...(tool_choice === undefined ? {} : { tool_choice: tool_choice === 'any' ? 'required' : tool_choice }),
    messages: objects(messages).map(({ prefix: _prefix, content, ...message }) => ({
      ...message,
      content: Array.isArray(content) ? objects(content).flatMap(partOfMistral) : content,
    })),
  }),
  whole: ({ choices, ...body }) => ({
    ...body,
    choices: objects(choices).map(({ message, ...choice }) => ({
      ...choice,
      message: mistralContent(message as Json),
    })),
  }),
  stream: () => ({
    chunk: ({ choices, ...chunk }) =>
      frame({
        ...chunk,
        choices: objects(choices).map(({ delta, ...choice }) => ({
          ...choice,
          delta: mistralContent(delta as Json),
        })),
      }),
    end: () => 'data: [DONE]\n\n',
  }),
  error: (status, message) =>
    JSON.stringify({ object: 'error', message, type: 'error', code: String(status) }),
});
