/** What the fake provider says, in each wire format. */
import type { Wire } from './inputs.ts';

/** One format's replies. The pieces of a stream are joined as they are. */
export interface Shapes {
  /** A whole reply that says the text. */
  whole(model: string, text: string): object;
  /** A stream of text. */
  readonly text: StreamShapes;
  /** A stream of the arguments of one tool call. */
  readonly tool: StreamShapes;
}

/** The pieces of a stream: what comes before the deltas, one delta, and what comes after so many. */
export interface StreamShapes {
  begin(model: string): string;
  /** `text` begins with {@link word}, without what needs an escape. */
  delta(model: string, text: string): string;
  end(model: string, chunks: number): string;
}

/** Start of each delta with its quote, which clients count. */
export const word = '"lorem';

/** Pattern of the end of a complete stream in each client's format. */
export const lastWords: Readonly<Record<Wire, RegExp>> = {
  chat: /data: \[DONE\]\n\n$/,
  messages: /\{"type":"message_stop"\}\n\n$/,
  responses: /"type":"response\.completed".*\n\n$/,
  generateContent: /"finishReason":"STOP".*\r?\n\r?\n$/,
};

const created = 1_700_000_000;

function data(body: object): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}

function event(body: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${body.type}\ndata: ${JSON.stringify(body)}\n\n`;
}

const chatId = { id: 'chatcmpl-bench', created };
const chatUsage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };

function chunk(model: string, delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return data({ ...chatId, object: 'chat.completion.chunk', model, choices, usage: null });
}

function chatEnd(model: string, finish: string): string {
  const usage = data({
    ...chatId,
    object: 'chat.completion.chunk',
    model,
    choices: [],
    usage: chatUsage,
  });
  return `${chunk(model, {}, finish)}${usage}data: [DONE]\n\n`;
}

function called(fields: object): object {
  return { tool_calls: [{ index: 0, ...fields }] };
}

const chat: Shapes = {
  whole: (model, text) => ({
    ...chatId,
    object: 'chat.completion',
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: chatUsage,
  }),
  text: {
    begin: (model) => chunk(model, { role: 'assistant', content: '' }),
    delta: (model, content) => chunk(model, { content }),
    end: (model) => chatEnd(model, 'stop'),
  },
  tool: {
    begin: (model) =>
      chunk(model, {
        role: 'assistant',
        content: null,
        ...called({ id: 'call_bench', type: 'function', function: { name: 'write_file', arguments: '' } }),
      }) + chunk(model, called({ function: { arguments: '{"text":"' } })),
    delta: (model, text) => chunk(model, called({ function: { arguments: text } })),
    end: (model) => chunk(model, called({ function: { arguments: '"}' } })) + chatEnd(model, 'tool_calls'),
  },
};

function messageStart(model: string, block: object): string {
  const message = {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 1 },
  };
  return (
    event({ type: 'message_start', message }) +
    event({ type: 'content_block_start', index: 0, content_block: block })
  );
}

function messageEnd(reason: string, chunks: number): string {
  const delta = { stop_reason: reason, stop_sequence: null };
  return (
    event({ type: 'content_block_stop', index: 0 }) +
    event({ type: 'message_delta', delta, usage: { output_tokens: chunks } }) +
    event({ type: 'message_stop' })
  );
}

function blockDelta(delta: object): string {
  return event({ type: 'content_block_delta', index: 0, delta });
}

const messages: Shapes = {
  whole: (model, text) => ({
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 30 },
  }),
  text: {
    begin: (model) => messageStart(model, { type: 'text', text: '' }),
    delta: (_model, text) => blockDelta({ type: 'text_delta', text }),
    end: (_model, chunks) => messageEnd('end_turn', chunks),
  },
  tool: {
    begin: (model) =>
      messageStart(model, { type: 'tool_use', id: 'toolu_bench', name: 'write_file', input: {} }) +
      blockDelta({ type: 'input_json_delta', partial_json: '{"text":"' }),
    delta: (_model, text) => blockDelta({ type: 'input_json_delta', partial_json: text }),
    end: (_model, chunks) =>
      blockDelta({ type: 'input_json_delta', partial_json: '"}' }) + messageEnd('tool_use', chunks),
  },
};

const position = { item_id: 'item_bench', output_index: 0 };
const part = { ...position, content_index: 0 };

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function messageOf(text: string, status: string): object {
  return { id: 'item_bench', type: 'message', status, role: 'assistant', content: [partOf(text)] };
}

function callOf(input: string, status: string): object {
  const call = { call_id: 'call_bench', name: 'write_file', arguments: input };
  return { id: 'item_bench', type: 'function_call', status, ...call };
}

function responseOf(model: string, status: string, output: readonly object[]): object {
  return {
    id: 'resp_bench',
    object: 'response',
    created_at: created,
    status,
    error: null,
    incomplete_details: null,
    model,
    output,
    tools: [],
    store: false,
    usage:
      status === 'completed'
        ? {
            input_tokens: 20,
            input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
            output_tokens: 30,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 50,
          }
        : null,
  };
}

/** Sequence numbers grow in each stream; here each stands for many, and nobody counts them. */
function responseStart(model: string, item: object): string {
  const response = responseOf(model, 'in_progress', []);
  return (
    event({ type: 'response.created', sequence_number: 0, response }) +
    event({ type: 'response.output_item.added', sequence_number: 1, output_index: 0, item })
  );
}

function responseEnd(model: string, item: object): string {
  const response = responseOf(model, 'completed', [item]);
  return (
    event({ type: 'response.output_item.done', sequence_number: 6, output_index: 0, item }) +
    event({ type: 'response.completed', sequence_number: 7, response })
  );
}

const responses: Shapes = {
  whole: (model, text) => responseOf(model, 'completed', [messageOf(text, 'completed')]),
  text: {
    begin: (model) =>
      responseStart(model, { ...messageOf('', 'in_progress'), content: [] }) +
      event({ type: 'response.content_part.added', sequence_number: 2, ...part, part: partOf('') }),
    delta: (_model, delta) =>
      event({ type: 'response.output_text.delta', sequence_number: 3, ...part, delta, logprobs: [] }),
    // The whole text stands here again, in other letters: clients count each delta once.
    end: (model, chunks) => {
      const text = 'y'.repeat(chunks * 6);
      return (
        event({ type: 'response.output_text.done', sequence_number: 4, ...part, text, logprobs: [] }) +
        event({ type: 'response.content_part.done', sequence_number: 5, ...part, part: partOf(text) }) +
        responseEnd(model, messageOf(text, 'completed'))
      );
    },
  },
  tool: {
    begin: (model) => responseStart(model, callOf('', 'in_progress')) + argumentsDelta('{"text":"'),
    delta: (_model, text) => argumentsDelta(text),
    end: (model, chunks) => {
      const input = `{"text":"${'y'.repeat(chunks * 6)}"}`;
      return (
        argumentsDelta('"}') +
        event({
          type: 'response.function_call_arguments.done',
          sequence_number: 5,
          ...position,
          arguments: input,
        }) +
        responseEnd(model, callOf(input, 'completed'))
      );
    },
  },
};

function argumentsDelta(delta: string): string {
  return event({ type: 'response.function_call_arguments.delta', sequence_number: 3, ...position, delta });
}

function generated(model: string, parts: readonly object[], finished: boolean): object {
  const finish = finished ? { finishReason: 'STOP' } : {};
  return {
    candidates: [{ content: { role: 'model', parts }, ...finish, index: 0 }],
    usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 30, totalTokenCount: 50 },
    modelVersion: model,
    responseId: 'bench',
  };
}

const generateContentText: StreamShapes = {
  begin: () => '',
  delta: (model, text) => data(generated(model, [{ text }], false)),
  end: (model) => data(generated(model, [{ text: '' }], true)),
};

/** Arguments of tools come in one piece here: there is no stream of them. */
const generateContent: Shapes = {
  whole: (model, text) => generated(model, [{ text }], true),
  text: generateContentText,
  tool: generateContentText,
};

/** The replies of each format. */
export const shapes: Readonly<Record<Wire, Shapes>> = { chat, messages, responses, generateContent };
