/** What the fake provider says, in three formats. Deltas carry {@link word}, so that the load can count them. */
export interface Shapes {
  whole(model: string, length: number): object;
  begin(model: string): string;
  delta(model: string): string;
  end(model: string, chunks: number): string;
}

/** The first word of each delta, with the quote before it: the texts that some formats repeat at the end hold it once more. */
export const word = '"lorem';

/** The pattern of what stands at the end of a stream that is complete, in each client's format. */
export const lastWords = {
  chat: String.raw`data: \[DONE\]\n\n$`,
  messages: String.raw`\{"type":"message_stop"\}\n\n$`,
  responses: String.raw`\{"type":"response\.completed".*\n\n$`,
};

const said = `${word.slice(1)} `;

const created = 1_700_000_000;

function chunk(model: string, delta: object, finish: string | null = null): string {
  const body = {
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created,
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
  return `data: ${JSON.stringify(body)}\n\n`;
}

/** The chat-completions format. */
export const chat: Shapes = {
  whole: (model, length) => ({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'x'.repeat(length), refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 },
  }),
  begin: (model) => chunk(model, { role: 'assistant', content: '' }),
  delta: (model) => chunk(model, { content: said }),
  end: (model) => `${chunk(model, {}, 'stop')}data: [DONE]\n\n`,
};

function event(body: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${body.type}\ndata: ${JSON.stringify(body)}\n\n`;
}

/** The messages format. */
export const messages: Shapes = {
  whole: (model, length) => ({
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: 'x'.repeat(length) }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 30 },
  }),
  begin: (model) => {
    const usage = { input_tokens: 20, output_tokens: 1 };
    const message = {
      id: 'msg_bench',
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    return (
      event({ type: 'message_start', message }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
    );
  },
  delta: () => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: said } }),
  end: (_model, chunks) =>
    event({ type: 'content_block_stop', index: 0 }) +
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: chunks },
    }) +
    event({ type: 'message_stop' }),
};

/** The Responses format. */
export const responses: Shapes = {
  whole: (model, length) => responseOf(model, 'completed', 'x'.repeat(length)),
  begin: (model) =>
    event({
      type: 'response.created',
      sequence_number: 0,
      response: { ...responseOf(model, 'in_progress', ''), output: [], usage: null },
    }) +
    event({
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { ...messageOf('', 'in_progress'), content: [] },
    }) +
    event({ type: 'response.content_part.added', sequence_number: 2, ...place, part: partOf('') }),
  delta: () =>
    event({ type: 'response.output_text.delta', sequence_number: 3, ...place, delta: said, logprobs: [] }),
  // The whole text stands here again, in other letters: the load counts each delta once.
  end: (model, chunks) => {
    const text = 'y'.repeat(chunks);
    return (
      event({ type: 'response.output_text.done', sequence_number: 4, ...place, text, logprobs: [] }) +
      event({ type: 'response.content_part.done', sequence_number: 5, ...place, part: partOf(text) }) +
      event({
        type: 'response.output_item.done',
        sequence_number: 6,
        output_index: 0,
        item: messageOf(text, 'completed'),
      }) +
      event({
        type: 'response.completed',
        sequence_number: 7,
        response: responseOf(model, 'completed', text),
      })
    );
  },
};

const place = { item_id: 'msg_bench', output_index: 0, content_index: 0 };

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function messageOf(text: string, status: string): object {
  return { id: 'msg_bench', type: 'message', status, role: 'assistant', content: [partOf(text)] };
}

function responseOf(model: string, status: string, text: string): object {
  return {
    id: 'resp_bench',
    object: 'response',
    created_at: created,
    status,
    error: null,
    incomplete_details: null,
    model,
    output: [messageOf(text, status)],
    tools: [],
    store: false,
    usage: {
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 30,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 50,
    },
  };
}
