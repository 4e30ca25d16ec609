/** What the fake provider says, in two formats. Deltas carry {@link word}, so that the load can count them. */
export interface Shapes {
  whole(model: string, length: number): object;
  begin(model: string): string;
  delta(model: string): string;
  end(model: string, chunks: number): string;
}

/** Stands once in each delta and nowhere else. */
export const word = 'lorem';

/** Stands at the end of a stream that is complete, in each client's format. */
export const lastWords = { chat: 'data: [DONE]\n\n', messages: '{"type":"message_stop"}\n\n' };

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
  delta: (model) => chunk(model, { content: `${word} ` }),
  end: (model) => chunk(model, {}, 'stop') + lastWords.chat,
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
  delta: () =>
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${word} ` } }),
  end: (_model, chunks) =>
    event({ type: 'content_block_stop', index: 0 }) +
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: chunks },
    }) +
    event({ type: 'message_stop' }),
};
