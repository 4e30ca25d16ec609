import type { ChannelEntry } from 'sluice';
import openai from '../../channels/openai.ts';
import type { WireFrame } from '../../core/sdk/format.ts';
import { voices, type Read, type Voice } from '../flows/_wire.ts';
import { checkLegal as chatLegal } from '../support/legal-chat-completions.ts';
import { checkLegal as contentLegal } from '../support/legal-generate-content.ts';
import { checkLegal as messagesLegal } from '../support/legal-messages.ts';
import { checkLegal as responsesLegal } from '../support/legal-responses.ts';

/** The four formats that chat. */
export const formats = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;
export type Format = (typeof formats)[number];

type Json = Record<string, unknown>;

/** A format as its clients write and read it, and as its providers answer. */
export interface Dialect extends Voice {
  /** Returns the violations of the format in a stream that a client received. */
  readonly problems: (frames: WireFrame[]) => string[];
  /** The mark in a request's path by which a provider knows the format. */
  readonly mark: string;
}

/** Usage of every valid reply. */
export const reportedUsage = { input: 5, output: 7 };

const usage = {
  input_tokens: reportedUsage.input,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: reportedUsage.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: reportedUsage.input + reportedUsage.output,
};
const position = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const partOf = (text: string): Json => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const messageOf = (text: string): Json => ({
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [partOf(text)],
});
const responseOf = (model: string, status: string, output: readonly Json[]): Json => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model,
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  usage: status === 'completed' ? usage : null,
});
const sse = (value: Json): string => `event: ${String(value.type)}\ndata: ${JSON.stringify(value)}\n\n`;

const responses: Voice = {
  model: 'via-responses',
  channel: (baseUrl, options): ChannelEntry =>
    openai({
      key: 'sk-upstream',
      baseUrl: `${baseUrl}/v1`,
      models: ['via-responses'],
      id: 'responses',
      traits: { '*': { formats: ['responses'] } },
      ...options,
    }),
  path: () => '/v1/responses',
  headers: {},
  body: (model, stream) => ({ model, stream, store: false, input: 'hi' }),
  whole: (text, model = 'via-responses') => responseOf(model, 'completed', [messageOf(text)]),
  frames(words, model = 'via-responses') {
    const text = words.join('');
    const steps: Json[] = [
      { type: 'response.created', response: responseOf(model, 'in_progress', []) },
      { type: 'response.in_progress', response: responseOf(model, 'in_progress', []) },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...messageOf(''), status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...position, part: partOf('') },
      ...words.map((delta) => ({ type: 'response.output_text.delta', ...position, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...position, text, logprobs: [] },
      { type: 'response.content_part.done', ...position, part: partOf(text) },
      { type: 'response.output_item.done', output_index: 0, item: messageOf(text) },
      { type: 'response.completed', response: responseOf(model, 'completed', [messageOf(text)]) },
    ];
    return steps.map((step, sequence_number) => sse({ ...step, sequence_number }));
  },
  ending: 4,
  errorBody: (kind) => voices['chat-completions'].errorBody(kind),
  errorFrame: (kind) => {
    const { code, message } = (voices['chat-completions'].errorBody(kind) as { error: Json }).error;
    return sse({ type: 'error', code, message, param: null, sequence_number: 0 });
  },
  readWhole: (body) => ({
    text: textIn(body),
    models: [String(body.model)],
    complete: body.status === 'completed',
    output: (body.usage as Json | undefined)?.output_tokens as number,
  }),
  readFrames(frames): Read {
    const events = frames.flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as Json]));
    const last = events.findLast(({ type }) =>
      /^response\.(completed|incomplete|failed)$/.test(String(type)),
    );
    const response = last?.response as Json | undefined;
    return {
      text: events
        .map(({ type, delta }) => (type === 'response.output_text.delta' ? String(delta) : ''))
        .join(''),
      models: response === undefined ? [] : [String(response.model)],
      complete: last?.type === 'response.completed' && !events.some(({ type }) => type === 'error'),
      error: events.find(({ type }) => type === 'error' || type === 'response.failed'),
      output: (response?.usage as Json | undefined)?.output_tokens as number,
    };
  },
  isEnvelope: (body, status) => voices['chat-completions'].isEnvelope(body, status),
};

function textIn({ output }: Json): string {
  return (output as readonly { readonly content?: readonly { readonly text?: string }[] }[])
    .flatMap(({ content = [] }) => content.map(({ text = '' }) => text))
    .join('');
}

/** Dialects by format. */
export const dialects: Readonly<Record<Format, Dialect>> = {
  'chat-completions': { ...voices['chat-completions'], problems: chatLegal, mark: '/chat/' },
  messages: { ...voices.messages, problems: messagesLegal, mark: '/messages' },
  'generate-content': { ...voices['generate-content'], problems: contentLegal, mark: '/v1beta/' },
  responses: { ...responses, problems: responsesLegal, mark: '/responses' },
};

/** Length of a provider's reply. */
export type Size = 'small' | 'large';

/** Tag in a call by which the provider chooses its reply, and the client checks it. */
export function tagOf(number: number, size: Size): string {
  return `case-${number}-${size}`;
}

/** Text of a valid reply. It has the number of the call, so that mixed-up replies are found. */
export function wordsOf(tag: string): readonly [string, ...string[]] {
  const begin: readonly [string, ...string[]] = [`${tag}:`, ' grüße', ' 世界', ' 🌍'];
  if (tag.endsWith('-small')) return [...begin, ' and more', ' — fin'];
  return [
    ...begin,
    ...Array.from({ length: 300 }, (_, index) => ` ${index} ${'lorem ipsum '.repeat(50)}`),
    ' — fin',
  ];
}

/** Returns a client's body with the tag. */
export function bodyOf(format: Format, model: string, stream: boolean, tag: string): string {
  return JSON.stringify(dialects[format].body(model, stream), (_key, value: unknown) =>
    value === 'hi' ? tag : value,
  );
}

/** Returns the tag in a request that a provider received. */
export function tagIn(body: string): string {
  return /case-\d+-(?:small|large)/.exec(body)?.[0] ?? tagOf(0, 'small');
}
