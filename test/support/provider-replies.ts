import { parseObject } from '../../core/json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

/** Part of a reply, in no particular format. The `input` of a call is JSON text, possibly truncated. */
export type ReplyPart =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly name: string; readonly input: string };

/** Amount of usage that a provider reports. */
export type UsageReport = 'nothing' | 'zeros' | 'all';

/** Reply that a fake provider sends in any format. */
export interface Answer {
  readonly parts: readonly ReplyPart[];
  readonly end: 'stop' | 'length' | 'filter';
  readonly usageReport: UsageReport;
  /** Number of pieces in which each text and each call's arguments are streamed. Default 1. */
  readonly pieces?: number;
  /** generateContent: arguments of calls are streamed. */
  readonly streamsArguments?: boolean;
}

export type ChatFormat = 'chat-completions' | 'messages' | 'generate-content' | 'responses' | 'converse';

/** Tokens of a provider that reports all usage. */
export const reportedUsage = { input: 1234, output: 5678 } as const;

interface Replies {
  /** Returns the provider's stream, one SSE event an element. */
  stream(answer: Answer): readonly string[];
  whole(answer: Answer): JsonObject;
}

/** Returns the events of a provider's stream, without the blank line after each. */
export function streamOf(format: ChatFormat, answer: Answer): readonly string[] {
  return replies[format].stream(answer);
}

/** Returns a provider's non-streamed reply. */
export function wholeOf(format: ChatFormat, answer: Answer): JsonObject {
  return replies[format].whole(answer);
}

function cut(text: string, pieces = 1): readonly string[] {
  const length = Math.max(1, Math.ceil(text.length / pieces));
  const found: string[] = [];
  for (let at = 0; at < text.length; at += length) found.push(text.slice(at, at + length));
  return found;
}

const data = (json: JsonObject): string => `data: ${JSON.stringify(json)}`;
const named = (json: JsonObject): string => `event: ${String(json.type)}\n${data(json)}`;
const hasCall = ({ parts }: Answer): boolean => parts.some(({ kind }) => kind === 'call');

function tokens(usageReport: UsageReport, names: readonly [string, string, string?]): JsonObject {
  if (usageReport === 'nothing') return {};
  const { input, output } = usageReport === 'zeros' ? { input: 0, output: 0 } : reportedUsage;
  const [first, second, sum] = names;
  return {
    usage: { [first]: input, [second]: output, ...(sum === undefined ? {} : { [sum]: input + output }) },
  };
}

const chatUsage = (usageReport: UsageReport): JsonObject =>
  tokens(usageReport, ['prompt_tokens', 'completion_tokens', 'total_tokens']);

function chatFinish(answer: Answer): string {
  if (answer.end === 'stop') return hasCall(answer) ? 'tool_calls' : 'stop';
  return answer.end === 'length' ? 'length' : 'content_filter';
}

const chat: Replies = {
  stream(answer) {
    const { parts, pieces, usageReport } = answer;
    const chunk = (choices: JsonValue, more: JsonObject = {}): string =>
      data({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
    const delta = (fields: JsonObject): string => chunk([{ index: 0, delta: fields, finish_reason: null }]);
    let calls = 0;
    const frames = parts.flatMap((one) => {
      if (one.kind !== 'call') {
        const field = one.kind === 'text' ? 'content' : 'reasoning_content';
        return cut(one.text, pieces).map((text) => delta({ [field]: text }));
      }
      const index = calls;
      calls += 1;
      const called = { name: one.name, arguments: '' };
      return [
        delta({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: called }] }),
        ...cut(one.input, pieces).map((text) =>
          delta({ tool_calls: [{ index, function: { arguments: text } }] }),
        ),
      ];
    });
    return [
      delta({ role: 'assistant', content: '' }),
      ...frames,
      chunk([{ index: 0, delta: {}, finish_reason: chatFinish(answer) }]),
      ...(usageReport === 'nothing' ? [] : [chunk([], chatUsage(usageReport))]),
      'data: [DONE]',
    ];
  },
  whole(answer) {
    const { parts, usageReport } = answer;
    const words = (kind: ReplyPart['kind']): string =>
      parts.map((one) => (one.kind === kind && one.kind !== 'call' ? one.text : '')).join('');
    const calls = parts.flatMap((one, index) =>
      one.kind === 'call'
        ? [{ id: `call_${index}`, type: 'function', function: { name: one.name, arguments: one.input } }]
        : [],
    );
    const message = {
      role: 'assistant',
      content: words('text') === '' ? null : words('text'),
      refusal: null,
      ...(words('reasoning') === '' ? {} : { reasoning_content: words('reasoning') }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    const choices = [{ index: 0, message, finish_reason: chatFinish(answer) }];
    return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, ...chatUsage(usageReport) };
  },
};

const messagesUsage = (usageReport: UsageReport): JsonObject =>
  tokens(usageReport, ['input_tokens', 'output_tokens']);

function stopReason(answer: Answer): string {
  if (answer.end === 'stop') return hasCall(answer) ? 'tool_use' : 'end_turn';
  return answer.end === 'length' ? 'max_tokens' : 'refusal';
}

const messages: Replies = {
  stream(answer) {
    const { parts, pieces, usageReport } = answer;
    const counts = messagesUsage(usageReport);
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
    const blocks = parts.flatMap((one, index) => {
      const start = (content_block: JsonObject): string =>
        named({ type: 'content_block_start', index, content_block });
      const delta = (fields: JsonObject): string =>
        named({ type: 'content_block_delta', index, delta: fields });
      const stop = named({ type: 'content_block_stop', index });
      switch (one.kind) {
        case 'text':
          return [
            start({ type: 'text', text: '' }),
            ...cut(one.text, pieces).map((text) => delta({ type: 'text_delta', text })),
            stop,
          ];
        case 'reasoning':
          return [
            start({ type: 'thinking', thinking: '', signature: '' }),
            ...cut(one.text, pieces).map((thinking) => delta({ type: 'thinking_delta', thinking })),
            delta({ type: 'signature_delta', signature: 'EqQB' }),
            stop,
          ];
        case 'call':
          return [
            start({ type: 'tool_use', id: `toolu_${index}`, name: one.name, input: {} }),
            ...cut(one.input, pieces).map((text) => delta({ type: 'input_json_delta', partial_json: text })),
            stop,
          ];
      }
    });
    return [
      named({
        type: 'message_start',
        message: { ...message, stop_reason: null, stop_sequence: null, ...counts },
      }),
      ...blocks,
      named({
        type: 'message_delta',
        delta: { stop_reason: stopReason(answer), stop_sequence: null },
        ...counts,
      }),
      named({ type: 'message_stop' }),
    ];
  },
  whole(answer) {
    const content = answer.parts.map((one, index) => {
      if (one.kind === 'call')
        return {
          type: 'tool_use',
          id: `toolu_${index}`,
          name: one.name,
          input: parseObject(one.input) ?? {},
        };
      if (one.kind === 'text') return { type: 'text', text: one.text };
      return { type: 'thinking', thinking: one.text, signature: 'EqQB' };
    });
    return {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: stopReason(answer),
      stop_sequence: null,
      ...messagesUsage(answer.usageReport),
    };
  },
};

/** Usage that Vertex AI reports without counts counts as nothing. */
function generateUsage(usageReport: UsageReport): JsonObject {
  if (usageReport === 'nothing') return {};
  if (usageReport === 'zeros') return { usageMetadata: { trafficType: 'ON_DEMAND' } };
  const { input, output } = reportedUsage;
  return {
    usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output },
  };
}

/** The parts of a call whose arguments are streamed: strings in pieces, all else at once, and the end by itself. */
function streamedCall(name: string, args: JsonObject, pieces: number | undefined): readonly JsonObject[] {
  const part = (partial: JsonObject): JsonObject => ({
    functionCall: { partialArgs: [partial], willContinue: true },
  });
  const partsOf = (value: JsonValue | undefined, jsonPath: string): readonly JsonObject[] => {
    if (typeof value === 'string')
      return [
        ...cut(value, pieces).map((text) => part({ jsonPath, stringValue: text, willContinue: true })),
        part({ jsonPath, stringValue: '' }),
      ];
    if (typeof value === 'number') return [part({ jsonPath, numberValue: value })];
    if (typeof value === 'boolean') return [part({ jsonPath, boolValue: value })];
    if (Array.isArray(value))
      return value.flatMap((inner, index) => partsOf(inner as JsonValue, `${jsonPath}[${index}]`));
    if (!isObject(value)) return [part({ jsonPath, nullValue: 'NULL_VALUE' })];
    return Object.keys(value).flatMap((key) => partsOf(value[key], `${jsonPath}[${JSON.stringify(key)}]`));
  };
  return [{ functionCall: { name, willContinue: true } }, ...partsOf(args, '$'), { functionCall: {} }];
}

const generateFinish = { stop: 'STOP', length: 'MAX_TOKENS', filter: 'SAFETY' } as const;

const generate: Replies = {
  stream({ parts: ownParts, pieces, streamsArguments, end, usageReport }) {
    const parts = ownParts.flatMap((one): readonly JsonObject[] => {
      if (one.kind === 'call') {
        const args = parseObject(one.input) ?? {};
        if (streamsArguments === true) return streamedCall(one.name, args, pieces);
        return [{ functionCall: { name: one.name, args } }];
      }
      const thought = one.kind === 'reasoning' ? { thought: true } : {};
      return cut(one.text, pieces).map((text) => ({ text, ...thought }));
    });
    return [...parts, { text: '' }].map((part, index, all) =>
      data({
        candidates: [
          {
            content: { role: 'model', parts: [part] },
            ...(index === all.length - 1 ? { finishReason: generateFinish[end] } : {}),
          },
        ],
        ...generateUsage(index === all.length - 1 || usageReport !== 'all' ? usageReport : 'zeros'),
        modelVersion: 'm',
        createTime: '2026-04-02T17:03:50.399550Z',
        responseId: 'r',
      }),
    );
  },
  whole({ parts: ownParts, end, usageReport }) {
    const parts = ownParts.map((one) => {
      if (one.kind === 'call')
        return { functionCall: { name: one.name, args: parseObject(one.input) ?? {} } };
      return { text: one.text, ...(one.kind === 'reasoning' ? { thought: true } : {}) };
    });
    const candidates = [{ content: { role: 'model', parts }, finishReason: generateFinish[end], index: 0 }];
    return { candidates, ...generateUsage(usageReport), modelVersion: 'm', responseId: 'r' };
  },
};

/** The item that says it. */
function itemOf(one: ReplyPart, index: number): JsonObject {
  const id = `item_${index}`;
  switch (one.kind) {
    case 'text': {
      const content = [{ type: 'output_text', text: one.text, annotations: [] }];
      return { type: 'message', id, role: 'assistant', status: 'completed', content };
    }
    case 'reasoning':
      return { type: 'reasoning', id, summary: [{ type: 'summary_text', text: one.text }] };
    case 'call': {
      const call = { call_id: `call_${index}`, name: one.name, arguments: one.input };
      return { type: 'function_call', id, status: 'completed', ...call };
    }
  }
}

/** Fields that every response has. */
const echo: JsonObject = {
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
};

/** Returns the non-streamed response. */
function responseOf({ parts, end, usageReport }: Answer): JsonObject {
  return {
    ...echo,
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: end === 'stop' ? 'completed' : 'incomplete',
    output: parts.map(itemOf),
    ...(end === 'stop'
      ? {}
      : { incomplete_details: { reason: end === 'length' ? 'max_output_tokens' : 'content_filter' } }),
    ...responsesUsage(usageReport),
  };
}

function responsesUsage(usageReport: UsageReport): JsonObject {
  const { usage } = tokens(usageReport, ['input_tokens', 'output_tokens', 'total_tokens']);
  const details = {
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  return isObject(usage) ? { usage: { ...usage, ...details } } : {};
}

const responses: Replies = {
  stream(answer) {
    const response = responseOf(answer);
    const items = answer.parts.flatMap((one, index) => {
      const item = itemOf(one, index);
      const at = { output_index: index, item_id: item.id };
      const empty = { text: { content: [] }, reasoning: { summary: [] }, call: { arguments: '' } }[one.kind];
      const added = { ...item, ...(item.status === undefined ? {} : { status: 'in_progress' }), ...empty };
      const inside = {
        text: { type: 'response.output_text.delta', content_index: 0, logprobs: [] },
        reasoning: { type: 'response.reasoning_summary_text.delta', summary_index: 0 },
        call: { type: 'response.function_call_arguments.delta' },
      }[one.kind];
      return [
        { type: 'response.output_item.added', output_index: index, item: added },
        ...cut(one.kind === 'call' ? one.input : one.text, answer.pieces).map((delta) => ({
          ...inside,
          ...at,
          delta,
        })),
        { type: 'response.output_item.done', output_index: index, item },
      ];
    });
    return [
      {
        type: 'response.created',
        response: { ...response, status: 'in_progress', output: [], incomplete_details: null },
      },
      ...items,
      { type: `response.${String(response.status)}`, response },
    ].map((frame) => named(frame));
  },
  whole: responseOf,
};

const converseStop = (answer: Answer): string =>
  answer.end === 'stop'
    ? hasCall(answer)
      ? 'tool_use'
      : 'end_turn'
    : { length: 'max_tokens', filter: 'content_filtered' }[answer.end];

const converseUsage = (usageReport: UsageReport): JsonObject =>
  tokens(usageReport, ['inputTokens', 'outputTokens', 'totalTokens']);

const converse: Replies = {
  stream(answer) {
    const event = (name: string, json: JsonObject): string =>
      `event: ${name}\n${data({ ...json, p: 'abc' })}`;
    const blocks = answer.parts.flatMap((one, contentBlockIndex) => {
      const piece = (delta: JsonObject): string => event('contentBlockDelta', { contentBlockIndex, delta });
      const toolUse = {
        toolUseId: `tooluse_${contentBlockIndex}`,
        name: one.kind === 'call' ? one.name : '',
      };
      return [
        ...(one.kind === 'call'
          ? [event('contentBlockStart', { contentBlockIndex, start: { toolUse } })]
          : []),
        ...cut(one.kind === 'call' ? one.input : one.text, answer.pieces).map((text) =>
          piece(
            { text: { text }, reasoning: { reasoningContent: { text } }, call: { toolUse: { input: text } } }[
              one.kind
            ],
          ),
        ),
        event('contentBlockStop', { contentBlockIndex }),
      ];
    });
    const usage = converseUsage(answer.usageReport);
    return [
      event('messageStart', { role: 'assistant' }),
      ...blocks,
      event('messageStop', { stopReason: converseStop(answer) }),
      event('metadata', { ...usage, metrics: { latencyMs: 1 } }),
    ];
  },
  whole(answer) {
    const content = answer.parts.map((one, index): JsonObject => {
      switch (one.kind) {
        case 'text':
          return { text: one.text };
        case 'reasoning':
          return { reasoningContent: { reasoningText: { text: one.text } } };
        case 'call':
          return {
            toolUse: { toolUseId: `tooluse_${index}`, name: one.name, input: parseObject(one.input) ?? {} },
          };
      }
    });
    return {
      output: { message: { role: 'assistant', content } },
      stopReason: converseStop(answer),
      ...converseUsage(answer.usageReport),
      metrics: { latencyMs: 1 },
    };
  },
};

const replies: Readonly<Record<ChatFormat, Replies>> = {
  converse,
  'chat-completions': chat,
  messages,
  'generate-content': generate,
  responses,
};
