import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';

/** A reply whose size is given, as the events that every format can write. */
export interface ReplyShape {
  readonly name: string;
  /** Its size through a gateway is no longer than this: what a provider may send has a limit on its blocks and items. Default 4000. */
  readonly most?: number;
  make(size: number): GatewayEvent[];
}

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const head: GatewayEvent = { type: 'head', id: 'reply_1', model: 'm', created: 1_760_000_000 };
const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 5, output: 7, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
};
const stop = (choice = 0): GatewayEvent => ({ type: 'finish', choice, reason: 'stop' });

const text = (block: number, words: readonly string[], choice = 0): GatewayEvent[] => [
  { type: 'text-start', block, choice },
  ...words.map((word): GatewayEvent => ({ type: 'text-delta', block, choice, text: word })),
  { type: 'text-end', block, choice },
];

const call = (block: number, pieces: readonly string[], choice = 0): GatewayEvent[] => [
  { type: 'tool-start', block, choice, id: `call_${block}`, name: 'look' },
  ...pieces.map((input): GatewayEvent => ({ type: 'tool-delta', block, choice, input })),
  { type: 'tool-end', block, choice },
];

const thought = (block: number, words: readonly string[]): GatewayEvent[] => [
  { type: 'reasoning-start', block, choice: 0 },
  ...words.map((word): GatewayEvent => ({ type: 'reasoning-delta', block, choice: 0, text: word })),
  {
    type: 'reasoning-end',
    block,
    choice: 0,
    proof: { format: 'messages', kind: 'signature', value: `c2ln${block}` },
  },
];

/** A shape of one choice: what stands between the reply's beginning and its end. */
function answer(name: string, make: (size: number) => GatewayEvent[]): ReplyShape {
  return { name, make: (size) => [head, ...make(size), stop(), usage] };
}

/** Replies that providers may send, in every size. */
export const replyShapes: readonly ReplyShape[] = [
  answer('tiny pieces of text', (size) =>
    text(
      0,
      times(size, () => 'a '),
    ),
  ),
  answer('one long word', (size) => text(0, ['a'.repeat(64 * size)])),
  answer('escaped text', (size) => text(0, ['"\\\n'.repeat(16 * size)])),
  answer('blank pieces of text', (size) =>
    text(
      0,
      times(size, () => '\n'),
    ),
  ),
  answer('a tag that never ends', (size) => text(0, ['<thin', ...times(size, () => '<')])),
  answer('many texts', (size) => times(size, (block) => text(block, ['hello'])).flat()),
  answer('tiny pieces of thought', (size) => [
    ...thought(
      0,
      times(size, () => 'hm '),
    ),
    ...text(1, ['so']),
  ]),
  answer('many thoughts', (size) => times(size, (block) => thought(block, ['hm'])).flat()),
  answer('thoughts and calls in turn', (size) =>
    times(size, (index) => [...thought(2 * index, ['hm']), ...call(2 * index + 1, ['{}'])]).flat(),
  ),
  answer('many calls', (size) => times(size, (block) => call(block, ['{"a":', '1}'])).flat()),
  answer('one call in tiny pieces', (size) => call(0, ['{"a":"', ...times(size, () => 'b'), '"}'])),
  answer('calls at the same time', (size) => [
    ...times(size, (block): GatewayEvent => call(block, [])[0] as GatewayEvent),
    ...times(size, (block): GatewayEvent => ({ type: 'tool-delta', block, choice: 0, input: '{}' })),
    ...times(size, (block): GatewayEvent => ({ type: 'tool-end', block, choice: 0 })),
  ]),
  answer('many sources', (size) => [
    { type: 'text-start', block: 0, choice: 0 },
    { type: 'text-delta', block: 0, choice: 0, text: 'hello' },
    ...times(size, (index): GatewayEvent => ({
      type: 'citation',
      block: 0,
      choice: 0,
      citation: { url: `https://example.com/${index}`, title: 'A page', start: 0, end: 5 },
    })),
    { type: 'text-end', block: 0, choice: 0 },
  ]),
  answer('many probabilities', (size) => [
    { type: 'text-start', block: 0, choice: 0 },
    ...times(size, (): GatewayEvent => ({
      type: 'text-delta',
      block: 0,
      choice: 0,
      text: 'a',
      logprobs: [{ token: 'a', logprob: -1, top: [{ token: 'b', logprob: -2 }] }],
    })),
    { type: 'text-end', block: 0, choice: 0 },
  ]),
  answer('sound in tiny pieces', (size) => [
    { type: 'media-start', block: 0, choice: 0, media: 'audio', mimeType: 'audio/wav' },
    ...times(size, (): GatewayEvent => ({
      type: 'media-delta',
      block: 0,
      choice: 0,
      data: 'AAAA',
      transcript: 'a',
    })),
    { type: 'media-end', block: 0, choice: 0 },
  ]),
  {
    name: 'unknown members',
    most: 65_536,
    make: (size) => {
      const odd = Object.fromEntries(times(size, (index) => [`odd_${index}`, index]));
      const extra = { 'chat-completions': odd, messages: odd, responses: odd, 'generate-content': odd };
      return [{ ...head, extra }, ...text(0, ['hello']), stop(), usage];
    },
  },
  answer('usage again and again', (size) => [...text(0, ['hello']), ...times(size, () => usage)]),
  {
    name: 'many choices, one after the other',
    make: (size) => [
      head,
      ...times(size, (choice) => [...text(choice, ['hello'], choice), stop(choice)]).flat(),
      usage,
    ],
  },
  {
    name: 'many choices at the same time',
    make: (size) => [
      head,
      ...times(size, (choice): GatewayEvent => ({ type: 'text-start', block: choice, choice })),
      ...times(size, (choice): GatewayEvent => ({
        type: 'text-delta',
        block: choice,
        choice,
        text: 'hello',
      })),
      ...times(size, (choice): GatewayEvent[] => [
        { type: 'text-end', block: choice, choice },
        stop(choice),
      ]).flat(),
      usage,
    ],
  },
];

/** Frames of a provider that no encoder of ours would write, by format. */
export interface FrameShape {
  readonly name: string;
  readonly format: string;
  make(size: number): JsonObject[];
}

const chunk = (choices: JsonObject[]): JsonObject => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices,
});
const delta = (inner: JsonObject, index = 0): JsonObject => ({ index, delta: inner, finish_reason: null });
const toolCall = (index: number, input = '{}'): JsonObject => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'look', arguments: input },
});
const chatEnd = (count = 1): JsonObject =>
  chunk(times(count, (index) => ({ index, delta: {}, finish_reason: 'stop' })));

function chatFrames(name: string, make: (size: number) => JsonObject[]): FrameShape {
  return { name, format: 'chat-completions', make };
}

const candidate = (parts: JsonObject[], index = 0): JsonObject => ({
  index,
  content: { role: 'model', parts },
});
const contentEnd: JsonObject = {
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '.' }] }, finishReason: 'STOP' }],
};

const messageStart: JsonObject = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    usage: { input_tokens: 1 },
  },
};
const messageEnd: JsonObject[] = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
];

const item = (index: number): JsonObject => ({
  type: 'message',
  id: `msg_${index}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'hello', annotations: [] }],
});
const openCall = (index: number): JsonObject => ({
  type: 'function_call',
  id: `fc_${index}`,
  call_id: `call_${index}`,
  name: 'look',
  arguments: '',
  status: 'in_progress',
});
const response = (output: JsonObject[], status = 'completed'): JsonObject => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status,
  output,
});
const members = (count: number): JsonObject =>
  Object.fromEntries(times(count, (index) => [`odd_${index}`, index]));

/** Frames in providers' own formats, in every size. */
export const frameShapes: readonly FrameShape[] = [
  chatFrames('calls in one chunk', (size) => [
    chunk([delta({ role: 'assistant', tool_calls: times(size, (index) => toolCall(index)) })]),
    chatEnd(),
  ]),
  chatFrames('calls of one id', (size) => [
    ...times(size, (index) => chunk([delta({ tool_calls: [{ ...toolCall(index), id: 'call_0' }] })])),
    chatEnd(),
  ]),
  chatFrames('calls and words in turn', (size) => [
    ...times(size, (index) => [
      chunk([delta({ content: 'a' })]),
      chunk([delta({ tool_calls: [toolCall(index)] })]),
    ]).flat(),
    chatEnd(),
  ]),
  chatFrames('calls without numbers', (size) => [
    ...times(size, (index) => {
      const { index: _, ...unnumbered } = toolCall(index);
      return chunk([delta({ tool_calls: [unnumbered] })]);
    }),
    chatEnd(),
  ]),
  chatFrames('choices in one chunk', (size) => [
    chunk(times(size, (index) => delta({ content: 'hello' }, index))),
    chatEnd(size),
  ]),
  chatFrames('calls in turn', (size) => [
    ...times(size, (index) => chunk([delta({ tool_calls: [toolCall(index, '')] })])),
    ...times(size, (index) => chunk([delta({ tool_calls: [{ index, function: { arguments: '{}' } }] })])),
    chatEnd(),
  ]),
  chatFrames('unknown members', (size) => [
    chunk([delta({ content: 'hello', ...members(size) })]),
    chatEnd(),
  ]),
  chatFrames('unknown members of each chunk', (size) => [
    ...times(size, (index) => ({ ...chunk([delta({ content: 'a' })]), [`odd_${index}`]: index })),
    chatEnd(),
  ]),
  chatFrames('reasoning details', (size) => [
    ...times(size, (index) =>
      chunk([delta({ reasoning_details: [{ type: 'reasoning.text', text: 'hm', index }] })]),
    ),
    chatEnd(),
  ]),
  chatFrames('proofs of calls in one chunk', (size) => [
    chunk([
      delta({
        tool_calls: times(size, (index) => toolCall(index)),
        reasoning_details: times(size, (index) => ({
          type: 'reasoning.encrypted',
          id: `call_${index}`,
          data: 'c2ln',
          format: 'google-gemini-v1',
          index,
        })),
      }),
    ]),
    chatEnd(),
  ]),
  chatFrames('sound in padded pieces', (size) => [
    ...times(size, () => chunk([delta({ audio: { id: 'audio_1', data: 'QQ==', transcript: 'a' } })])),
    chatEnd(),
  ]),
  {
    name: 'blocks at the same time',
    format: 'messages',
    make: (size) => [
      messageStart,
      ...times(size, (index) => ({
        type: 'content_block_start',
        index,
        content_block: { type: 'text', text: '' },
      })),
      ...times(size, (index) => ({
        type: 'content_block_delta',
        index,
        delta: { type: 'text_delta', text: 'a' },
      })),
      ...times(size, (index) => ({ type: 'content_block_stop', index })),
      ...messageEnd,
    ],
  },
  {
    name: 'a signature in pieces',
    format: 'messages',
    make: (size) => [
      messageStart,
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      ...times(size, () => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'signature_delta', signature: 'c2ln' },
      })),
      { type: 'content_block_stop', index: 0 },
      ...messageEnd,
    ],
  },
  {
    name: 'deltas of usage',
    format: 'messages',
    make: (size) => [
      messageStart,
      ...times(size, () => messageEnd[0] as JsonObject),
      messageEnd[1] as JsonObject,
    ],
  },
  {
    name: 'parts in one chunk',
    format: 'generate-content',
    make: (size) => [{ candidates: [candidate(times(size, () => ({ text: 'a' })))] }, contentEnd],
  },
  {
    name: 'calls in one chunk',
    format: 'generate-content',
    make: (size) => [
      { candidates: [candidate(times(size, () => ({ functionCall: { name: 'look', args: { a: 1 } } })))] },
      contentEnd,
    ],
  },
  {
    name: 'candidates in one chunk',
    format: 'generate-content',
    make: (size) => [
      { candidates: times(size, (index) => candidate([{ text: 'a' }], index)) },
      { candidates: times(size, (index) => ({ ...candidate([], index), finishReason: 'STOP' })) },
    ],
  },
  {
    name: 'an output told only at the end',
    format: 'responses',
    make: (size) => [
      { type: 'response.created', response: response([], 'in_progress') },
      { type: 'response.completed', response: response(times(size, item)) },
    ],
  },
  {
    name: 'items without pieces',
    format: 'responses',
    make: (size) => [
      { type: 'response.created', response: response([], 'in_progress') },
      ...times(size, (output_index) => ({
        type: 'response.output_item.added',
        output_index,
        item: { ...item(output_index), status: 'in_progress', content: [] },
      })),
      ...times(size, (output_index) => ({
        type: 'response.output_item.done',
        output_index,
        item: item(output_index),
      })),
      { type: 'response.completed', response: response(times(size, item)) },
    ],
  },
  {
    name: 'open calls whose frames name no place',
    format: 'responses',
    make: (size) => [
      { type: 'response.created', response: response([], 'in_progress') },
      ...times(size, (index) => ({ type: 'response.output_item.added', item: openCall(index) })),
      ...times(size, (index) => ({
        type: 'response.function_call_arguments.delta',
        item_id: `fc_${index}`,
        delta: '{}',
      })),
      ...times(size, () => ({ type: 'response.function_call_arguments.delta', delta: ' ' })),
      ...times(size, (index) => ({
        type: 'response.output_item.done',
        item: { ...openCall(index), arguments: '{}', status: 'completed' },
      })),
      { type: 'response.completed', response: response([]) },
    ],
  },
];
