import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { defineChannel, type ChannelOptions, type ModelTraits } from 'sluice';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

type Json = { readonly [name: string]: unknown };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** Whole replies of providers, by format. */
const replies: Readonly<Record<string, Json>> = {
  'chat-completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'fine', annotations: [] }],
      },
    ],
    usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'fine' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 7 },
  },
  'generate-content': {
    candidates: [{ content: { role: 'model', parts: [{ text: 'fine' }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
  },
  converse: {
    output: { message: { role: 'assistant', content: [{ text: 'fine' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 5, outputTokens: 7, totalTokens: 12 },
    metrics: { latencyMs: 1 },
  },
  'text-completions': {
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, text: 'fine', finish_reason: 'stop', logprobs: null }],
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
  },
};

const paths: Readonly<Record<string, string>> = {
  'chat-completions': '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  'generate-content': '/v1beta/models/m:generateContent',
  converse: '/model/m/converse',
  'text-completions': '/v1/completions',
};

/** Minimal request of a client. */
const plain: Readonly<Record<string, Json>> = {
  'chat-completions': { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'm', input: 'Hi' },
  messages: { model: 'm', max_tokens: 4000, messages: [{ role: 'user', content: 'Hi' }] },
  'generate-content': { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  converse: { messages: [{ role: 'user', content: [{ text: 'Hi' }] }] },
  'text-completions': { model: 'm', prompt: 'Hi' },
};

interface Stage {
  readonly gateway: TestGateway;
  readonly upstream: ScriptedUpstream;
}

/** A gateway whose channel speaks one format and states these traits, before a provider that answers with this. */
async function stage(
  format: string,
  traits: ModelTraits,
  answer: Json | ((sent: Json, response: ServerResponse) => void) = replies[format] ?? {},
): Promise<Stage> {
  const upstream = await startUpstream((request, response) => {
    if (typeof answer === 'function') answer(JSON.parse(request.body.toString()) as Json, response);
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  closers.push(() => upstream.close());
  const kind = defineChannel({
    name: 'profiled',
    models: ['m'],
    setup: ({ baseUrl = '' }: ChannelOptions, { http }) => ({
      speaks: { chat: [format] },
      traits: () => traits,
      open: (call, { path, body, headers }) =>
        http.send(call, {
          url: baseUrl + path,
          headers: { ...headers, 'content-type': 'application/json' },
          body,
        }),
    }),
  });
  const gateway = await startGateway({ channels: [kind({ key: 'sk-upstream', baseUrl: upstream.url })] });
  closers.push(() => gateway.close());
  return { gateway, upstream };
}

async function send(
  { gateway, upstream }: Stage,
  format: string,
  body: Json | string,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await fetch(gateway.url + (paths[format] ?? ''), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${gateway.key}`,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const bytes = upstream.requests.at(-1)?.body.toString();
  return {
    status: response.status,
    text,
    reply: (text.startsWith('{') ? JSON.parse(text) : {}) as Json,
    lost: response.headers.get('x-sluice-loss') ?? '',
    bytes,
    sent: (bytes === undefined ? undefined : JSON.parse(bytes)) as Json | undefined,
  };
}

const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
const otherTool = {
  type: 'function',
  function: { name: 'g', parameters: { type: 'object', properties: {} } },
};
const chat = plain['chat-completions'] ?? {};

const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
const asks = { role: 'user', content: 'Do it.' };
const callsOf = (...ids: readonly string[]): Json => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const gave = (id: string): Json => ({ role: 'tool', tool_call_id: id, content: id });

describe('a client of chat completions on a channel of chat completions', () => {
  const cases: readonly (readonly [
    what: string,
    traits: ModelTraits,
    given: Json,
    sent: Json,
    lost: string,
  ])[] = [
    // https://developers.openai.com/api/reference/resources/chat: `max_tokens` is not compatible with o-series models.
    [
      'the output limit moves to the name that the model takes',
      { outputLimitField: 'max_completion_tokens' },
      { max_tokens: 7 },
      { max_completion_tokens: 7 },
      '',
    ],
    ['and back', { outputLimitField: 'max_tokens' }, { max_completion_tokens: 7 }, { max_tokens: 7 }, ''],
    [
      'of two limits the one that counts is sent',
      { outputLimitField: 'max_tokens' },
      { max_tokens: 900, max_completion_tokens: 7 },
      { max_tokens: 7 },
      '',
    ],
    [
      'settings that the model refuses are removed',
      { refuses: ['temperature', 'stop', 'presencePenalty', 'logprobs'] },
      { temperature: 0.5, stop: ['x'], presence_penalty: 1, frequency_penalty: 1, logprobs: true },
      { frequency_penalty: 1 },
      'logprobs, presence_penalty, stop, temperature',
    ],
    [
      'values outside the range of the model are moved into it',
      { ranges: { temperature: { max: 1 }, frequencyPenalty: { min: 0 } } },
      { temperature: 1.5, frequency_penalty: 0.5 },
      { temperature: 1, frequency_penalty: 0.5 },
      'temperature',
    ],
    // https://www.alibabacloud.com/help/en/model-studio/deep-thinking: "parameter.enable_thinking must be set to false for non-streaming calls".
    [
      'a model that thinks in streams alone is told not to for a whole reply',
      { reasoning: 'enable-thinking', thinksByDefault: true, thinksInStreamsOnly: true },
      {},
      { enable_thinking: false },
      '',
    ],
    [
      'and asked for a stream where the client wants it to think',
      { reasoning: 'enable-thinking', thinksByDefault: true, thinksInStreamsOnly: true },
      { enable_thinking: true },
      { enable_thinking: true, stream: true, stream_options: { include_usage: true } },
      '',
    ],
    // https://www.alibabacloud.com/help/en/model-studio/error-code: "Json mode response is not supported when enable_thinking is true".
    [
      'a model that gives no JSON while it thinks does not think about a schema',
      { reasoning: 'enable-thinking', thinksByDefault: true, jsonThinking: false },
      { response_format: { type: 'json_object' }, reasoning_effort: 'high' },
      { response_format: { type: 'json_object' }, enable_thinking: false },
      'reasoning_effort',
    ],
    // https://lmstudio.ai/docs/developer/openai-compat/structured-output
    [
      'a schema of any object stands in for JSON without a schema',
      { jsonObject: false },
      { response_format: { type: 'json_object' } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'response', schema: { type: 'object' } },
        },
      },
      '',
    ],
    [
      'a range is no reason to change what is in it',
      { ranges: { temperature: { max: 1 } } },
      { temperature: 0.5 },
      { temperature: 0.5 },
      '',
    ],
    [
      'an effort becomes a switch with a budget',
      { reasoning: 'enable-thinking', thinkingBudget: { max: 10_000 } },
      { reasoning_effort: 'medium' },
      { enable_thinking: true, thinking_budget: 8192 },
      '',
    ],
    [
      'a budget is moved into the range of the model',
      { reasoning: 'enable-thinking', thinkingBudget: { max: 1000 } },
      { reasoning_effort: 'medium' },
      { enable_thinking: true, thinking_budget: 1000 },
      'reasoning_effort',
    ],
    [
      'a wish not to think becomes the switch',
      { reasoning: 'enable-thinking', thinksByDefault: true },
      { reasoning_effort: 'none' },
      { enable_thinking: false },
      '',
    ],
    [
      'the switch in the template is set, and its other arguments stay',
      { reasoning: 'template', templateSwitch: 'thinking' },
      { enable_thinking: true, chat_template_kwargs: { x: 1 } },
      { chat_template_kwargs: { x: 1, thinking: true } },
      '',
    ],
    [
      'a switch of one template becomes that of another',
      { reasoning: 'template', templateSwitch: 'thinking' },
      { chat_template_kwargs: { enable_thinking: false } },
      { chat_template_kwargs: { thinking: false } },
      '',
    ],
    [
      'a switch becomes an effort',
      { reasoning: 'effort', efforts: ['none', 'low', 'high'] },
      { thinking: { type: 'disabled' } },
      { reasoning_effort: 'none' },
      '',
    ],
    [
      'an effort that the model has not is moved to the nearest',
      { reasoning: 'effort', efforts: ['low', 'high'] },
      { reasoning_effort: 'medium' },
      { reasoning_effort: 'low' },
      'reasoning_effort',
    ],
    [
      'an effort switches a model with both on',
      { reasoning: 'thinking', efforts: ['none', 'high', 'max'] },
      { reasoning_effort: 'high' },
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
      '',
    ],
    [
      'an effort alone is left where the model thinks anyway',
      { reasoning: 'thinking', efforts: ['none', 'high', 'max'], thinksByDefault: true },
      { reasoning_effort: 'high' },
      { reasoning_effort: 'high' },
      '',
    ],
    [
      'the measure of a model that has only a switch is lost',
      { reasoning: 'thinking' },
      { reasoning_effort: 'high' },
      { thinking: { type: 'enabled' } },
      'reasoning_effort',
    ],
    [
      'a model that always thinks cannot be told not to',
      { reasoning: 'thinking', thinksByDefault: true, stopsThinking: false },
      { thinking: { type: 'disabled' } },
      {},
      'reasoning_effort',
    ],
    [
      'no wish for reasoning goes to a model that takes none',
      { reasoning: 'none' },
      { reasoning_effort: 'high', thinking: { type: 'enabled' } },
      {},
      'reasoning_effort',
    ],
    [
      'members that the provider does not know are removed',
      { refusesUnknown: true, members: ['logit_bias'] },
      { logit_bias: { 5: 1 }, top_a: 3, store: true, seed: 1 },
      { logit_bias: { 5: 1 }, seed: 1 },
      'store, top_a',
    ],
    [
      'a forced tool stays, and the model does not think about it',
      { reasoning: 'thinking', thinksByDefault: true, forcedTools: 'without-thinking' },
      { tools: [tool], tool_choice: 'required' },
      { tools: [tool], tool_choice: 'required', thinking: { type: 'disabled' } },
      'reasoning_effort',
    ],
    [
      'a model that was asked to think is not asked to where a tool is forced',
      { reasoning: 'effort', forcedTools: 'without-thinking' },
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } }, reasoning_effort: 'high' },
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } },
      'reasoning_effort',
    ],
    [
      'a tool is not forced where thinking cannot be switched off',
      { reasoning: 'none', thinksByDefault: true, forcedTools: 'without-thinking' },
      { tools: [tool], tool_choice: 'required' },
      { tools: [tool], tool_choice: 'auto' },
      'tool_choice',
    ],
    [
      'nor on a model on which none can be forced',
      { forcedTools: 'never' },
      { tools: [tool], tool_choice: 'required' },
      { tools: [tool], tool_choice: 'auto' },
      'tool_choice',
    ],
    [
      'a choice among several tools is left to a model that takes named tools alone',
      { requiredTools: false },
      { tools: [tool, otherTool], tool_choice: 'required' },
      { tools: [tool, otherTool], tool_choice: 'auto' },
      'tool_choice',
    ],
    [
      'the one tool of a request is named to such a model',
      { requiredTools: false },
      { tools: [tool], tool_choice: 'required' },
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } },
      '',
    ],
    [
      'a named tool is the only one for a model that takes no names',
      { namedTools: false },
      { tools: [tool, otherTool], tool_choice: { type: 'function', function: { name: 'g' } } },
      { tools: [otherTool], tool_choice: 'required' },
      '',
    ],
    [
      'several calls of a turn go in turns of their own, each with its result',
      { parallelHistory: false },
      { messages: [asks, callsOf('1', '2'), gave('2'), gave('1')] },
      {
        messages: [asks, callsOf('1'), gave('1'), { ...callsOf('2'), content: null }, gave('2')],
      },
      '',
    ],
    [
      'adjacent turns of one speaker are joined where turns must alternate',
      { alternates: true },
      { messages: [asks, { role: 'user', content: 'Now.' }, { role: 'assistant', content: 'Yes.' }, asks] },
      {
        messages: [{ role: 'user', content: 'Do it.\n\nNow.' }, { role: 'assistant', content: 'Yes.' }, asks],
      },
      '',
    ],
    [
      'lists of texts go as one text where the provider takes parts with more than texts alone',
      { textParts: false },
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Do it.' },
              { type: 'text', text: 'Now.' },
            ],
          },
          { role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] },
        ],
      },
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Do it.\nNow.' },
          { role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] },
        ],
      },
      '',
    ],
    [
      'a model without tools and without forms of answers is told the schema',
      { tools: false, jsonSchema: false, jsonObject: false },
      {
        messages: [asks],
        response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
      },
      {
        messages: [
          {
            role: 'system',
            content:
              'Answer with a JSON object alone, without words around it. It fits this JSON Schema: {"type":"object"}',
          },
          asks,
        ],
      },
      'response_format',
    ],
    [
      'and that JSON is wanted where nothing else is',
      { tools: false, jsonSchema: false, jsonObject: false },
      { messages: [asks], response_format: { type: 'json_object' } },
      {
        messages: [
          { role: 'system', content: 'Answer with a JSON object alone, without words around it.' },
          asks,
        ],
      },
      'response_format',
    ],
    [
      'a client that switched thinking off itself keeps its forced tool',
      { reasoning: 'thinking', thinksByDefault: true, forcedTools: 'without-thinking' },
      { tools: [tool], tool_choice: 'required', thinking: { type: 'disabled' } },
      { tools: [tool], tool_choice: 'required', thinking: { type: 'disabled' } },
      '',
    ],
  ];

  test.each(cases)('%s', async (_, traits, given, expected, lost) => {
    const there = await stage('chat-completions', traits);
    const got = await send(there, 'chat-completions', { ...chat, ...given });
    expect(got.status).toBe(200);
    expect(got.sent).toEqual({ ...chat, ...expected });
    expect(got.lost.split(', ').toSorted().join(', ')).toBe(lost);
    expect(got.reply).toEqual(replies['chat-completions']);
  });

  test.each(cases.filter(([, , , , lost]) => lost !== ''))('strict: %s, or 400', async (_, traits, given) => {
    const there = await stage('chat-completions', traits);
    const got = await send(there, 'chat-completions', { ...chat, ...given }, { 'x-sluice-strict': 'true' });
    expect(got.status).toBe(400);
    expect(there.upstream.requests).toEqual([]);
  });

  // https://www.alibabacloud.com/help/en/model-studio/deep-thinking: "parameter.enable_thinking must be set to false for non-streaming calls".
  test.each(['chat-completions', 'messages'])(
    'a client of %s gets the thinking of a model that thinks in streams alone in its whole reply',
    async (client) => {
      const there = await stage(
        'chat-completions',
        { reasoning: 'enable-thinking', thinksByDefault: true, thinksInStreamsOnly: true },
        (sent, response) => {
          if (sent['stream'] !== true) {
            const error = {
              message: 'parameter.enable_thinking must be set to false for non-streaming calls',
            };
            response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
            return;
          }
          const chunk = (more: object): string =>
            `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...more })}\n\n`;
          const choice = (delta: object, reason: string | null = null): string =>
            chunk({ choices: [{ index: 0, delta, finish_reason: reason }] });
          response
            .writeHead(200, { 'content-type': 'text/event-stream' })
            .end(
              choice({ role: 'assistant', reasoning_content: 'Hm.' }) +
                choice({ content: 'fine' }) +
                choice({}, 'stop') +
                chunk({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } }) +
                'data: [DONE]\n\n',
            );
        },
      );
      const reasoning =
        client === 'messages'
          ? { thinking: { type: 'enabled', budget_tokens: 2000 } }
          : { reasoning_effort: 'high' };
      const got = await send(there, client, { ...plain[client], ...reasoning });
      expect(got.status).toBe(200);
      expect(got.sent).toMatchObject({ stream: true, enable_thinking: true });
      expect(JSON.stringify(got.reply)).toMatch(/"(?:reasoning_content|thinking)":"Hm\."/);
      expect(got.reply).toMatchObject(
        client === 'messages'
          ? { content: [{}, { text: 'fine' }], usage: { input_tokens: 5, output_tokens: 7 } }
          : { choices: [{ message: { content: 'fine' } }], usage: { total_tokens: 12 } },
      );
    },
  );

  test('only the members that change are edited in the bytes', async () => {
    const there = await stage('chat-completions', { outputLimitField: 'max_tokens', refuses: ['seed'] });
    const body =
      '{"model" : "m", "max_completion_tokens":7, "x":12345678901234567890, "seed" : 1,"messages":[{"role":"user","content":"\\u0048i"}] }';
    const { bytes } = await send(there, 'chat-completions', body);
    expect(bytes).toBe(
      '{"max_tokens":7,"model" : "m","x":12345678901234567890,"messages":[{"role":"user","content":"\\u0048i"}]}',
    );
  });

  test('bytes pass as they came where the traits say nothing of what is in them', async () => {
    const there = await stage('chat-completions', {
      outputLimitField: 'max_tokens',
      refuses: ['seed', 'temperature'],
      ranges: { topP: { max: 0.9 } },
      reasoning: 'thinking',
      thinksByDefault: true,
      forcedTools: 'without-thinking',
      systemRole: 'system',
      jsonSchema: false,
      replaysReasoning: true,
      refusesUnknown: true,
    });
    const body =
      '{"model" : "m","tool_choice":"auto" ,"top_p":0.50,"max_tokens":7, "messages":[{"role":"system","content":"seed"},{"role":"user","content":"Hi"}] }';
    const got = await send(there, 'chat-completions', body);
    expect(got.bytes).toBe(body);
    expect(got.lost).toBe('');
  });

  test('a long request is edited in its bytes too', async () => {
    const there = await stage('chat-completions', { outputLimitField: 'max_tokens' });
    const messages = JSON.stringify([{ role: 'user', content: 'long '.repeat(40_000) }]);
    const { bytes } = await send(
      there,
      'chat-completions',
      `{"model":"m","max_completion_tokens":7,"messages":${messages},"x":1.0}`,
    );
    expect(bytes).toBe(`{"max_tokens":7,"model":"m","messages":${messages},"x":1.0}`);
  });

  test('instructions go in the role that the model takes', async () => {
    const there = await stage('chat-completions', { systemRole: 'system' });
    const messages = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ];
    const { sent } = await send(there, 'chat-completions', { ...chat, messages, x: 1 });
    expect(sent).toEqual({
      ...chat,
      messages: [{ role: 'system', content: 'Be brief.' }, messages[1]],
      x: 1,
    });
  });

  const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
  const history = (assistantTurn: Json): Json => ({
    ...chat,
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: calls, ...assistantTurn },
      { role: 'tool', tool_call_id: 'c', content: '1' },
    ],
    tools: [tool],
  });
  /** Kimi and DeepSeek: MoonshotAI/kimi-agent-sdk#169, abhigyanpatwari/GitNexus#43. */
  const demanding = (sent: Json, response: ServerResponse): void => {
    const turns = sent.messages as readonly Json[];
    const lacking = turns.findIndex(({ role, tool_calls: made, reasoning_content: thought }) =>
      role === 'assistant' && made !== undefined ? typeof thought !== 'string' || thought === '' : false,
    );
    const thinks = (sent.thinking as Json | undefined)?.type !== 'disabled';
    if (thinks && lacking >= 0) {
      const message = `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${lacking}`;
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }));
    } else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(replies['chat-completions']));
  };
  const replaying: ModelTraits = { reasoning: 'thinking', thinksByDefault: true, replaysReasoning: true };

  test.each([
    ['a turn without reasoning', {}, {}, ' '],
    ['a turn with empty reasoning', { reasoning_content: '' }, {}, ' '],
    ['a turn with its reasoning', { reasoning_content: 'Hm.' }, {}, 'Hm.'],
    ['a turn that the model need not think about', {}, { thinking: { type: 'disabled' } }, undefined],
  ])('%s is taken by a model that wants its reasoning back', async (_, assistantTurn, more, thought) => {
    const there = await stage('chat-completions', replaying, demanding);
    const got = await send(there, 'chat-completions', { ...history(assistantTurn), ...more });
    expect(got.status).toBe(200);
    const turns = got.sent?.messages as readonly Json[];
    expect(turns[1]?.reasoning_content).toBe(thought);
    expect(got.lost).toBe('');
  });

  test('so is a turn of a client of messages', async () => {
    const there = await stage('chat-completions', replaying, demanding);
    const got = await send(there, 'messages', {
      model: 'm',
      max_tokens: 100,
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: '1' }] },
      ],
    });
    expect(got.status).toBe(200);
  });

  test('structured output of a model without it comes back as the answer', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'json_output', arguments: '{"a":1}' } };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    const answer = {
      ...replies['chat-completions'],
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
    };
    const there = await stage(
      'chat-completions',
      { jsonSchema: false, reasoning: 'thinking', thinksByDefault: true, forcedTools: 'without-thinking' },
      answer,
    );
    const schema = { type: 'object', properties: { a: { type: 'integer' } } };
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema } };
    const got = await send(there, 'chat-completions', { ...chat, response_format });
    expect(got.sent).toMatchObject({
      tools: [{ function: { name: 'json_output', parameters: schema } }],
      tool_choice: { type: 'function', function: { name: 'json_output' } },
      thinking: { type: 'disabled' },
    });
    expect(got.sent).not.toHaveProperty('response_format');
    expect(got.lost).toBe('reasoning_effort');
    expect(got.reply).toMatchObject({
      choices: [{ message: { content: '{"a":1}' }, finish_reason: 'stop' }],
    });
  });

  test('a model on which no tool can be forced is told to answer by the tool', async () => {
    const there = await stage('chat-completions', { jsonSchema: false, forcedTools: 'never' });
    const schema = { type: 'object', properties: { a: { type: 'integer' } } };
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema } };
    const got = await send(there, 'chat-completions', { ...chat, response_format });
    expect(got.sent).toMatchObject({ tools: [{ function: { name: 'json_output' } }] });
    expect(got.sent).not.toHaveProperty('tool_choice');
    expect(JSON.stringify(got.sent?.messages)).toContain('json_output');
    expect(got.lost).toBe('response_format');
  });
});

describe('a reply to a client of chat completions on a channel of chat completions', () => {
  const traits: ModelTraits = {
    reasoningField: 'reasoning',
    finishReasons: { eos: 'stop' },
    inlineThinking: true,
  };
  const whole = (message: Json, finish_reason: string): Json => ({
    ...replies['chat-completions'],
    x: 1,
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  });

  test.each<readonly [ModelTraits, Json, string, Json]>([
    [traits, { content: 'Yes.', reasoning: 'Hm.' }, 'eos', { content: 'Yes.', reasoning_content: 'Hm.' }],
    [
      traits,
      { content: '<think>Hm.</think>\n\nYes.' },
      'stop',
      { content: 'Yes.', reasoning_content: 'Hm.' },
    ],
    [traits, { content: 'Yes, "reasoning".' }, 'stop', { content: 'Yes, "reasoning".' }],
  ])('has the words of the specification: %j', async (given, message, finish, expected) => {
    const there = await stage('chat-completions', given, whole(message, finish));
    const got = await send(there, 'chat-completions', chat);
    expect(got.reply).toEqual(whole(expected, 'stop'));
  });

  test('in a stream only the chunks that say it otherwise are changed', async () => {
    const chunk = (delta: string, finish = 'null'): string =>
      `data: {"id":"c", "object":"chat.completion.chunk","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`;
    const frames = [
      chunk('{"role":"assistant","content":""}'),
      chunk('{"reasoning":"Hm."}'),
      chunk('{ "content":"Yes."}'),
      chunk('{}', '"eos"'),
      'data: [DONE]\n\n',
    ];
    const there = await stage(
      'chat-completions',
      { reasoningField: 'reasoning', finishReasons: { eos: 'stop' } },
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join('')),
    );
    const { text } = await send(there, 'chat-completions', { ...chat, stream: true });
    expect(text).toContain(frames[0]);
    expect(text).toContain(frames[2]);
    expect(text).toContain('"delta":{"reasoning_content":"Hm."}');
    expect(text).toContain('"finish_reason":"stop"');
    expect(text).not.toMatch(/"reasoning"|eos/);
  });

  test('thinking between tags is told from the text, however it is cut', async () => {
    const frames = ['<th', 'ink>H', 'm.</thi', 'nk>\n\nY', 'es.'].map(
      (content) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`,
    );
    const end =
      'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
    const there = await stage(
      'chat-completions',
      { inlineThinking: true },
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join('') + end),
    );
    const { text } = await send(there, 'chat-completions', { ...chat, stream: true });
    const deltas = text
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map((frame) => (JSON.parse(frame.slice(6)) as { choices: { delta: Json }[] }).choices[0]?.delta ?? {});
    const joinedDeltas = (name: string): string =>
      deltas.map((delta) => (typeof delta[name] === 'string' ? delta[name] : '')).join('');
    expect([joinedDeltas('reasoning_content'), joinedDeltas('content')]).toEqual(['Hm.', 'Yes.']);
  });
});

describe('a client of another format on a channel of the same', () => {
  const anthropicTool = { name: 'f', input_schema: { type: 'object' } };
  const googleTool = { functionDeclarations: [{ name: 'f' }] };
  const bedrockTool = { toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } };

  test.each<readonly [format: string, traits: ModelTraits, given: Json, sent: Json, lost: string]>([
    [
      'responses',
      { refuses: ['temperature', 'topP'] },
      { temperature: 0.5, top_p: 0.5 },
      {},
      'temperature, top_p',
    ],
    [
      'responses',
      { reasoning: 'effort', efforts: ['low', 'high'] },
      { reasoning: { effort: 'medium', context: 'x' } },
      { reasoning: { effort: 'low', context: 'x' } },
      'reasoning.effort',
    ],
    ['responses', { reasoning: 'none' }, { reasoning: { effort: 'low' } }, {}, 'reasoning'],
    [
      'responses',
      { ranges: { maxOutput: { min: 16 } } },
      { max_output_tokens: 5 },
      { max_output_tokens: 16 },
      'max_output_tokens',
    ],
    [
      'responses',
      { forcedTools: 'without-thinking', reasoning: 'effort', thinksByDefault: true },
      { tools: [{ type: 'function', name: 'f', parameters: {} }], tool_choice: 'required' },
      {
        tools: [{ type: 'function', name: 'f', parameters: {} }],
        tool_choice: 'required',
        reasoning: { effort: 'none' },
      },
      'reasoning',
    ],
    ['responses', { refusesUnknown: true }, { x: 1, store: true }, {}, 'store, x'],
    // "Thinking may not be enabled when tool_choice forces tool use.": mastra-ai/mastra#7507, langchain-ai/langchain#35544.
    [
      'messages',
      { reasoning: 'budget' },
      {
        thinking: { type: 'enabled', budget_tokens: 2000 },
        tools: [anthropicTool],
        tool_choice: { type: 'any' },
      },
      { tools: [anthropicTool], tool_choice: { type: 'any' } },
      'thinking',
    ],
    [
      'messages',
      { reasoning: 'adaptive', thinksByDefault: true },
      { tools: [anthropicTool], tool_choice: { type: 'tool', name: 'f' } },
      { tools: [anthropicTool], tool_choice: { type: 'tool', name: 'f' }, thinking: { type: 'disabled' } },
      'thinking',
    ],
    [
      'messages',
      { reasoning: 'adaptive', thinksByDefault: true, stopsThinking: false },
      { thinking: { type: 'adaptive' }, tools: [anthropicTool], tool_choice: { type: 'any' } },
      { thinking: { type: 'adaptive' }, tools: [anthropicTool], tool_choice: { type: 'auto' } },
      'tool_choice',
    ],
    [
      'messages',
      { refuses: ['topK'], ranges: { temperature: { min: 1 } } },
      { top_k: 4, temperature: 0.5 },
      { temperature: 1 },
      'temperature, top_k',
    ],
    [
      'messages',
      { reasoning: 'adaptive' },
      { thinking: { type: 'enabled', budget_tokens: 2000 } },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      '',
    ],
    [
      'generate-content',
      { refuses: ['topK'], ranges: { temperature: { max: 1 } } },
      { generationConfig: { topK: 4, temperature: 1.5, seed: 3, x: 1 } },
      { generationConfig: { temperature: 1, seed: 3, x: 1 } },
      'generationConfig.temperature, generationConfig.topK',
    ],
    [
      'generate-content',
      { refuses: ['topK'] },
      { generation_config: { top_k: 4, seed: 3 } },
      { generationConfig: { seed: 3 } },
      'generationConfig.topK',
    ],
    [
      'generate-content',
      { reasoning: 'none' },
      { generationConfig: { thinkingConfig: { thinkingBudget: 100 }, seed: 3 } },
      { generationConfig: { seed: 3 } },
      'generationConfig.thinkingConfig',
    ],
    [
      'generate-content',
      { forcedTools: 'never' },
      { tools: [googleTool], toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
      { tools: [googleTool], toolConfig: { functionCallingConfig: { mode: 'AUTO' } } },
      'toolConfig.functionCallingConfig',
    ],
    [
      'converse',
      { refuses: ['topP'], ranges: { temperature: { max: 0.5 } } },
      { inferenceConfig: { topP: 0.5, temperature: 1, maxTokens: 7 } },
      { inferenceConfig: { temperature: 0.5, maxTokens: 7 } },
      'inferenceConfig.temperature, inferenceConfig.topP',
    ],
    [
      'converse',
      { reasoning: 'budget' },
      {
        additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2000 }, x: 1 },
        toolConfig: { tools: [bedrockTool], toolChoice: { any: {} } },
      },
      {
        additionalModelRequestFields: { x: 1 },
        toolConfig: { tools: [bedrockTool], toolChoice: { any: {} } },
      },
      'additionalModelRequestFields.thinking',
    ],
    [
      'text-completions',
      { refuses: ['seed'], ranges: { temperature: { max: 1 } } },
      { seed: 1, temperature: 2 },
      { temperature: 1 },
      'seed, temperature',
    ],
  ])('%s with %j: %j', async (format, traits, given, expected, lost) => {
    const there = await stage(format, traits);
    const body = plain[format] ?? {};
    const got = await send(there, format, { ...body, ...given });
    expect(got.status).toBe(200);
    expect(got.sent).toEqual({ ...body, ...expected });
    expect(got.lost.split(', ').toSorted().join(', ')).toBe(lost);
    const strict = await send(there, format, { ...body, ...given }, { 'x-sluice-strict': 'true' });
    expect(strict.status).toBe(lost === '' ? 200 : 400);
  });

  test('Claude that is asked to think by the name of its model keeps a forced tool', async () => {
    const there = await stage('messages', { reasoning: 'budget' });
    const got = await send(there, 'chat-completions', {
      ...chat,
      reasoning_effort: 'high',
      max_tokens: 4000,
      tools: [tool],
      tool_choice: 'required',
    });
    expect(got.sent).toMatchObject({ tool_choice: { type: 'any' } });
    expect(got.sent).not.toHaveProperty('thinking');
    expect(got.lost).toBe('reasoning_effort');
  });

  test('structured output of a client of messages comes back as its answer', async () => {
    const use = { type: 'tool_use', id: 't', name: 'json_output', input: { a: 1 } };
    const there = await stage(
      'messages',
      { jsonSchema: false },
      { ...replies.messages, content: [use], stop_reason: 'tool_use' },
    );
    const schema = { type: 'object', properties: { a: { type: 'integer' } } };
    const got = await send(there, 'messages', {
      ...plain.messages,
      output_config: { format: { type: 'json_schema', schema } },
    });
    expect(got.sent).toMatchObject({ tool_choice: { type: 'tool', name: 'json_output' } });
    expect(got.reply).toMatchObject({
      content: [{ type: 'text', text: '{"a":1}' }],
      stop_reason: 'end_turn',
    });
  });
});
