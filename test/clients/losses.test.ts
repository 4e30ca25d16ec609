import type Anthropic from '@anthropic-ai/sdk';
import * as messagesErrors from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import type OpenAI from 'openai';
import * as chatErrors from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { anthropic, formats, genai, openai, Recorder, type FormatName } from './sdks.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
    );
  });
  gateway = await startGateway({
    channels: [
      ...formats.map((format) =>
        demo({ id: format, speaks: [format], models: { [`via-${format}`]: 'demo' } }),
      ),
      openaiChannel({ key: 'k', baseUrl: `${upstream.url}/v1`, models: { 'official-chat': 'gpt-4.1' } }),
    ],
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

type Fields = Record<string, unknown>;

interface Options {
  readonly stream?: boolean;
  readonly headers?: Record<string, string>;
}

/** Sends a request with these fields through the SDK of a format and gives back the loss header, as a list. */
const losses: Readonly<
  Record<FormatName, (model: string, fields: Fields, options?: Options) => Promise<string[]>>
> = {
  async 'chat-completions'(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, messages: [{ role: 'user', content: 'Hi' }], ...fields, stream };
    const { data, response } = await openai(gateway)
      .chat.completions.create(body as unknown as OpenAI.Chat.Completions.ChatCompletionCreateParams, {
        headers,
      })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
  async messages(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, max_tokens: 4000, messages: [{ role: 'user', content: 'Hi' }], ...fields, stream };
    const { data, response } = await anthropic(gateway)
      .messages.create(body as unknown as Anthropic.MessageCreateParams, { headers })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
  async 'generate-content'(model, fields, { stream = false, headers = {} } = {}) {
    const recorder = new Recorder();
    const { models } = genai(gateway, { recorder, headers });
    const { contents = 'Hi', ...rest } = fields;
    const request = { model, contents: contents as string, config: { httpOptions: { extraBody: rest } } };
    if (stream) for await (const _ of await models.generateContentStream(request));
    else await models.generateContent(request);
    return listed(recorder.last.headers);
  },
  async responses(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, input: 'Hi', ...fields, stream };
    const { data, response } = await openai(gateway)
      .responses.create(body as unknown as OpenAI.Responses.ResponseCreateParams, { headers })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
};

function listed(headers: Headers): string[] {
  const header = headers.get('x-sluice-loss');
  return header === null ? [] : header.split(', ').toSorted();
}

const tool = {
  name: 'get_weather',
  description: 'The weather',
  schema: { type: 'object', properties: { city: { type: 'string' } } },
};
const chatTool = (more: Fields = {}): Fields => ({
  tools: [
    {
      type: 'function',
      function: { name: tool.name, description: tool.description, parameters: tool.schema, ...more },
    },
  ],
});
const messagesTool = (more: Fields = {}): Fields => ({
  tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema, ...more }],
});
const generateTool = (more: Fields = {}): Fields => ({
  tools: [
    {
      functionDeclarations: [
        { name: tool.name, description: tool.description, parametersJsonSchema: tool.schema, ...more },
      ],
    },
  ],
});
const responsesTool = (more: Fields = {}): Fields => ({
  tools: [
    { type: 'function', name: tool.name, description: tool.description, parameters: tool.schema, ...more },
  ],
});
const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const user = (content: unknown, more: Fields = {}): Fields => ({
  messages: [{ role: 'user', content, ...more }],
});
const config = (fields: Fields): Fields => ({ generationConfig: fields });

/** Fields of a request, and what of them the other format has no place for, in the client's own words. */
type Row = readonly [fields: Fields, lost: readonly string[]];

const rows: readonly {
  readonly client: FormatName;
  readonly channel: FormatName;
  readonly rows: readonly Row[];
}[] = [
  {
    client: 'chat-completions',
    channel: 'messages',
    rows: [
      [{ max_completion_tokens: 100 }, []],
      [{ max_tokens: 100 }, []],
      [{ temperature: 0.5 }, []],
      [{ temperature: 1.7 }, ['temperature']],
      [{ top_p: 0.9 }, []],
      [{ stop: ['END', 'STOP'] }, []],
      [{ user: 'u-1' }, []],
      [{ n: 1 }, []],
      [{ seed: 7 }, ['seed']],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ presence_penalty: 0.5 }, ['presence_penalty']],
      [{ frequency_penalty: 0.5 }, ['frequency_penalty']],
      [{ logprobs: true, top_logprobs: 2 }, ['logprobs', 'top_logprobs']],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, ['verbosity']],
      [{ store: true }, ['store']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ service_tier: 'auto' }, []],
      [{ service_tier: 'flex' }, ['service_tier']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ reasoning_effort: 'none' }, []],
      [{ ...chatTool(), parallel_tool_calls: false }, []],
      [{ ...chatTool({ strict: true }), tool_choice: 'required' }, []],
      [{ ...chatTool(), tool_choice: { type: 'function', function: { name: tool.name } } }, []],
      [{ response_format: { type: 'text' } }, []],
      [{ response_format: { type: 'json_object' } }, ['response_format']],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        ['response_format.json_schema.name', 'response_format.json_schema.strict'],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
      [
        user([{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'high' } }]),
        ['messages[0].content[0].image_url.detail'],
      ],
      [user([{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }]), []],
      [user([{ type: 'text', text: 'Hi', x_future: 1 }]), ['messages[0].content[0].x_future']],
    ],
  },
  {
    client: 'chat-completions',
    channel: 'generate-content',
    rows: [
      [{ temperature: 1.7, max_completion_tokens: 100, stop: 'END' }, []],
      [{ seed: 7 }, []],
      [{ presence_penalty: 0.5, frequency_penalty: 0.5 }, []],
      [{ n: 2 }, []],
      [{ logprobs: true, top_logprobs: 2 }, []],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ user: 'u-1' }, ['user']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, ['verbosity']],
      [{ store: true }, ['store']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ service_tier: 'flex' }, []],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ reasoning_effort: 'max' }, ['reasoning_effort']],
      [{ ...chatTool(), parallel_tool_calls: false }, ['parallel_tool_calls']],
      [{ ...chatTool({ strict: true }) }, ['tools[0].function.strict']],
      [{ ...chatTool(), tool_choice: 'required' }, []],
      [{ response_format: { type: 'json_object' } }, []],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        ['response_format.json_schema.name', 'response_format.json_schema.strict'],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
      [
        user([{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }]),
        ['messages[0].content[0].prompt_cache_breakpoint'],
      ],
    ],
  },
  {
    client: 'messages',
    channel: 'chat-completions',
    rows: [
      [{ temperature: 0.5, stop_sequences: ['END'], system: 'Be brief.' }, []],
      [{ metadata: { user_id: 'u-1' } }, []],
      [{ service_tier: 'standard_only' }, []],
      [{ container: 'container_1' }, ['container']],
      [{ context_management: { edits: [] } }, ['context_management']],
      [{ inference_geo: 'eu' }, ['inference_geo']],
      [{ speed: 'fast' }, ['speed']],
      [{ cache_control: { type: 'ephemeral' } }, ['cache_control']],
      [{ x_future: 1 }, ['x_future']],
      [{ thinking: { type: 'disabled' } }, []],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }, []],
      [
        { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } },
        ['thinking.display'],
      ],
      [{ thinking: { type: 'between_tools' } }, ['thinking.type']],
      [{ output_config: { format: { type: 'json_schema', schema: citySchema } } }, []],
      [{ output_config: { task_budget: { type: 'tokens', total: 9000 } } }, ['output_config.task_budget']],
      [
        { ...messagesTool({ strict: true }), tool_choice: { type: 'any', disable_parallel_tool_use: true } },
        [],
      ],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [messagesTool({ defer_loading: true }), ['tools[0].defer_loading']],
      [user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]), []],
      [
        user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }]),
        ['messages[0].content[0].cache_control.ttl'],
      ],
      [
        user([
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
            title: 'a.pdf',
            citations: { enabled: true },
          },
        ]),
        ['messages[0].content[0].citations'],
      ],
      [
        {
          ...messagesTool(),
          messages: [
            { role: 'user', content: 'Hi' },
            { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: tool.name, input: {} }] },
            {
              role: 'user',
              content: [
                { type: 'tool_result', tool_use_id: 'toolu_1', content: 'no network', is_error: true },
              ],
            },
          ],
        },
        ['messages[2].content[0].is_error'],
      ],
    ],
  },
  {
    client: 'messages',
    channel: 'generate-content',
    rows: [
      [{ temperature: 0.5, top_k: 5, stop_sequences: ['END'], system: 'Be brief.' }, []],
      [{ metadata: { user_id: 'u-1' } }, ['metadata.user_id']],
      [{ service_tier: 'standard_only' }, []],
      [{ container: 'container_1' }, ['container']],
      [{ x_future: 1 }, ['x_future']],
      // Models with levels cannot stop thinking: the least there is stands in.
      [{ thinking: { type: 'disabled' } }, ['thinking']],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [{ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } }, []],
      [{ output_config: { effort: 'max' }, thinking: { type: 'adaptive' } }, ['output_config.effort']],
      [{ output_config: { format: { type: 'json_schema', schema: citySchema } } }, []],
      [
        { ...messagesTool(), tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
        ['tool_choice.disable_parallel_tool_use'],
      ],
      [messagesTool({ strict: true }), ['tools[0].strict']],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [
        user([{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]),
        ['messages[0].content[0].cache_control'],
      ],
      [
        { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
        ['system[0].cache_control'],
      ],
    ],
  },
  {
    client: 'generate-content',
    channel: 'messages',
    rows: [
      [config({ temperature: 0.5, topK: 5, maxOutputTokens: 100, stopSequences: ['END'] }), []],
      [config({ temperature: 1.7 }), ['generationConfig.temperature']],
      [config({ seed: 7 }), ['generationConfig.seed']],
      [config({ presencePenalty: 0.5 }), ['generationConfig.presencePenalty']],
      [config({ frequencyPenalty: 0.5 }), ['generationConfig.frequencyPenalty']],
      [
        config({ responseLogprobs: true, logprobs: 2 }),
        ['generationConfig.logprobs', 'generationConfig.responseLogprobs'],
      ],
      [config({ candidateCount: 1 }), []],
      [config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }), ['generationConfig.mediaResolution']],
      [config({ responseMimeType: 'text/plain' }), []],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }), []],
      [config({ thinkingConfig: { thinkingBudget: 2048 } }), []],
      [config({ thinkingConfig: { thinkingBudget: 0 } }), []],
      [config({ xFuture: 1 }), ['generationConfig.xFuture']],
      [
        { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] },
        ['safetySettings'],
      ],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, ['serviceTier']],
      [{ serviceTier: 'standard' }, []],
      [{ xFuture: 1 }, ['xFuture']],
      [{ systemInstruction: { parts: [{ text: 'Be brief.' }] } }, []],
      [{ ...generateTool(), toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, []],
      [generateTool({ behavior: 'NON_BLOCKING' }), ['tools[0].functionDeclarations[0].behavior']],
    ],
  },
  {
    client: 'generate-content',
    channel: 'chat-completions',
    rows: [
      [config({ temperature: 1.7, maxOutputTokens: 100, stopSequences: ['END'] }), []],
      [config({ seed: 7, presencePenalty: 0.5, frequencyPenalty: 0.5, candidateCount: 2 }), []],
      [config({ responseLogprobs: true, logprobs: 2 }), []],
      [config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' }), ['generationConfig.mediaResolution']],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { thinkingLevel: 'HIGH' } }), []],
      [
        config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }),
        ['generationConfig.thinkingConfig.includeThoughts'],
      ],
      [config({ thinkingConfig: { thinkingBudget: 2048 } }), []],
      [config({ responseModalities: ['TEXT'] }), []],
      [
        { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] },
        ['safetySettings'],
      ],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, []],
      [{ xFuture: 1 }, ['xFuture']],
      [
        {
          ...generateTool(),
          toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [tool.name] } },
        },
        [],
      ],
    ],
  },
  {
    client: 'responses',
    channel: 'chat-completions',
    rows: [
      [{ temperature: 1.7, top_p: 0.9, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ store: false }, []],
      [{ include: ['reasoning.encrypted_content'] }, []],
      [{ user: 'u-1', metadata: { team: 'a' }, service_tier: 'flex', prompt_cache_key: 'k' }, []],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ truncation: 'auto' }, ['truncation']],
      [{ x_future: 1 }, ['x_future']],
      [{ stream_options: { include_obfuscation: false } }, []],
      [{ reasoning: { effort: 'high' } }, []],
      [{ reasoning: { effort: 'high', context: 'all_turns' } }, ['reasoning.context']],
      [{ text: { verbosity: 'low' } }, []],
      [{ text: { format: { type: 'json_schema', name: 'city', strict: true, schema: citySchema } } }, []],
      [{ ...responsesTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
      [responsesTool({ defer_loading: true }), ['tools[0].defer_loading']],
      [
        { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi', x_future: 1 }] }] },
        ['input[0].content[0].x_future'],
      ],
    ],
  },
  {
    client: 'responses',
    channel: 'messages',
    rows: [
      [{ temperature: 0.5, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ temperature: 1.7 }, ['temperature']],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ truncation: 'auto' }, ['truncation']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning: { effort: 'high', summary: 'auto' } }, []],
      [{ text: { verbosity: 'low' } }, ['text.verbosity']],
      [
        { text: { format: { type: 'json_schema', name: 'city', strict: true, schema: citySchema } } },
        ['text.format.name', 'text.format.strict'],
      ],
      [{ ...responsesTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
    ],
  },
  {
    client: 'responses',
    channel: 'generate-content',
    rows: [
      [{ temperature: 1.7, max_output_tokens: 100, instructions: 'Be brief.' }, []],
      [{ metadata: { team: 'a' } }, ['metadata']],
      [{ prompt_cache_key: 'k' }, ['prompt_cache_key']],
      [{ user: 'u-1' }, ['user']],
      [{ max_tool_calls: 3 }, ['max_tool_calls']],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning: { effort: 'high' } }, []],
      [{ text: { verbosity: 'low' } }, ['text.verbosity']],
      [{ ...responsesTool({ strict: true }) }, ['tools[0].strict']],
      [{ ...responsesTool(), parallel_tool_calls: false }, ['parallel_tool_calls']],
    ],
  },
  {
    client: 'chat-completions',
    channel: 'responses',
    rows: [
      [{ max_completion_tokens: 100, temperature: 1.7, user: 'u-1', metadata: { team: 'a' } }, []],
      [{ max_completion_tokens: 9 }, ['max_completion_tokens']],
      [{ top_p: 0.9 }, []],
      [{ stop: ['END', 'STOP'] }, ['stop']],
      [{ n: 1 }, []],
      [{ seed: 7 }, ['seed']],
      [{ logit_bias: { '50256': -100 } }, ['logit_bias']],
      [{ presence_penalty: 0.5 }, ['presence_penalty']],
      [{ frequency_penalty: 0.5 }, ['frequency_penalty']],
      [{ logprobs: true, top_logprobs: 2 }, []],
      [{ prediction: { type: 'content', content: 'x' } }, ['prediction']],
      [{ verbosity: 'low' }, []],
      [{ prompt_cache_key: 'k', service_tier: 'flex' }, []],
      [{ x_future: 1 }, ['x_future']],
      [{ reasoning_effort: 'high' }, []],
      [{ ...chatTool({ strict: true }), tool_choice: 'required', parallel_tool_calls: false }, []],
      [
        {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'city', strict: true, schema: citySchema },
          },
        },
        [],
      ],
      [user('Hi', { name: 'ada' }), ['messages[0].name']],
    ],
  },
  {
    client: 'messages',
    channel: 'responses',
    rows: [
      [{ temperature: 0.5, system: 'Be brief.' }, []],
      [{ stop_sequences: ['END'] }, ['stop_sequences']],
      [{ top_k: 5 }, ['top_k']],
      [{ container: 'container_1' }, ['container']],
      [{ speed: 'fast' }, ['speed']],
      [{ x_future: 1 }, ['x_future']],
      [{ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } }, []],
      [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
      [messagesTool({ cache_control: { type: 'ephemeral' } }), ['tools[0].cache_control']],
      [{ ...messagesTool({ strict: true }), tool_choice: { type: 'any' } }, []],
    ],
  },
  {
    client: 'generate-content',
    channel: 'responses',
    rows: [
      [config({ temperature: 1.7, maxOutputTokens: 100 }), []],
      [config({ stopSequences: ['END'] }), ['generationConfig.stopSequences']],
      [config({ seed: 7 }), ['generationConfig.seed']],
      [config({ topK: 5 }), ['generationConfig.topK']],
      [config({ presencePenalty: 0.5 }), ['generationConfig.presencePenalty']],
      [config({ responseMimeType: 'application/json', responseJsonSchema: citySchema }), []],
      [config({ thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }), []],
      [{ labels: { team: 'a' } }, ['labels']],
      [{ serviceTier: 'flex' }, []],
      [{ xFuture: 1 }, ['xFuture']],
    ],
  },
];

const refusals: Readonly<Record<FormatName, unknown>> = {
  'chat-completions': chatErrors.BadRequestError,
  messages: messagesErrors.BadRequestError,
  'generate-content': ApiError,
  responses: chatErrors.BadRequestError,
};

/** Fields of a strict refusal that only one SDK parses. */
const coded = (lost: readonly string[]): object => ({
  code: 'unsupported_parameter',
  param: expect.toBeOneOf([...lost]) as string,
});
const details: Readonly<Record<FormatName, (lost: readonly string[]) => object>> = {
  'chat-completions': coded,
  responses: coded,
  messages: () => ({ type: 'invalid_request_error' }),
  'generate-content': () => ({}),
};

describe.each(rows)('$client client, $channel channel', ({ client, channel, rows: pair }) => {
  const model = `via-${channel}`;

  test('a plain request loses nothing: there is no header', async () => {
    expect(await losses[client](model, {})).toEqual([]);
    expect(await losses[client](model, {}, { stream: true })).toEqual([]);
  });

  test.each(
    pair.map(([fields, lost]) => ({
      sent: JSON.stringify(fields).slice(0, 110),
      fields,
      lost,
      told: lost.join(', ') || 'nothing',
    })),
  )('$sent loses $told', async ({ fields, lost }) => {
    expect(await losses[client](model, fields)).toEqual([...lost].toSorted());
  });

  test('everything that is lost stands in one header, whole and streamed, each path once', async () => {
    const some = pair.filter(
      ([fields]) =>
        !('messages' in fields) &&
        !('tools' in fields) &&
        !('response_format' in fields) &&
        !('text' in fields) &&
        !('output_config' in fields),
    );
    const merged: Fields = {};
    const expected = new Set<string>();
    for (const [fields, lost] of some) {
      if (lost.length === 0) continue;
      for (const [key, value] of Object.entries(fields)) {
        merged[key] =
          key === 'generationConfig'
            ? { ...(merged[key] as Fields | undefined), ...(value as Fields) }
            : value;
      }
      for (const path of lost) expected.add(path);
    }
    expect(expected.size).toBeGreaterThanOrEqual(4);
    for (const stream of [false, true])
      expect(await losses[client](model, merged, { stream })).toEqual([...expected].toSorted());
  });

  test('strict: the same request is refused, and the refusal names every path', async () => {
    const lossy = pair.filter(([fields, lost]) => lost.length > 0 && !('messages' in fields)).slice(0, 6);
    for (const [fields, lost] of lossy) {
      const refused = losses[client](model, fields, { headers: { 'x-sluice-strict': 'true' } });
      await expect(refused).rejects.toBeInstanceOf(refusals[client]);
      const error = (await refused.catch((raised: unknown) => raised)) as { status: number; message: string };
      expect(error).toMatchObject({ status: 400, ...details[client](lost) });
      expect(lost.filter((path) => !error.message.includes(path))).toEqual([]);
    }
  });

  test('strict: a request that loses nothing is answered', async () => {
    expect(await losses[client](model, {}, { headers: { 'x-sluice-strict': 'true' } })).toEqual([]);
  });
});

describe.each(formats)('%s client, channel of the same format', (format) => {
  test('nothing is ever lost, strict or not', async () => {
    const all: Readonly<Record<FormatName, Fields>> = {
      'chat-completions': {
        seed: 7,
        logit_bias: { '1': 1 },
        x_future: 1,
        reasoning_effort: 'max',
        ...chatTool({ strict: true }),
        parallel_tool_calls: false,
      },
      messages: {
        top_k: 5,
        container: 'c',
        x_future: 1,
        ...messagesTool({ cache_control: { type: 'ephemeral' } }),
      },
      'generate-content': {
        safetySettings: [],
        labels: { a: 'b' },
        xFuture: 1,
        generationConfig: { seed: 7, mediaResolution: 'MEDIA_RESOLUTION_LOW' },
      },
      responses: {
        store: false,
        include: ['reasoning.encrypted_content'],
        truncation: 'auto',
        x_future: 1,
        reasoning: { effort: 'max', summary: 'auto', context: 'all_turns' },
        tools: [
          ...(responsesTool({ strict: true, defer_loading: true }).tools as unknown[]),
          { type: 'file_search', vector_store_ids: ['vs_1'] },
        ],
        parallel_tool_calls: false,
      },
    };
    for (const stream of [false, true]) {
      expect(
        await losses[format](`via-${format}`, all[format], {
          stream,
          headers: { 'x-sluice-strict': 'true' },
        }),
      ).toEqual([]);
    }
  });
});

describe('settings that some providers of the chat format take and the official one refuses', () => {
  test('messages: top_k goes where nothing is known against it, and is dropped and reported for the official API', async () => {
    expect(await losses.messages('via-chat-completions', { top_k: 5 })).toEqual([]);
    expect(await losses.messages('official-chat', { top_k: 5 })).toEqual(['top_k']);
    expect(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '')).not.toHaveProperty('top_k');
  });

  test('generateContent: topK likewise', async () => {
    expect(await losses['generate-content']('official-chat', config({ topK: 5 }))).toEqual([
      'generationConfig.topK',
    ]);
    expect(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '')).not.toHaveProperty('top_k');
  });
});

describe('content that the channel’s format cannot carry is refused, never dropped', () => {
  const wav = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==';
  const cases: readonly [
    client: FormatName,
    channel: FormatName,
    what: string,
    fields: Fields,
    path: string,
  ][] = [
    [
      'chat-completions',
      'messages',
      'sound',
      user([
        { type: 'text', text: 'Hi' },
        { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
      ]),
      'messages[0].content[1]',
    ],
    [
      'chat-completions',
      'messages',
      'another provider’s file',
      user([{ type: 'file', file: { file_id: 'file-1' } }]),
      'messages[0].content[0]',
    ],
    [
      'chat-completions',
      'generate-content',
      'another provider’s file',
      user([{ type: 'file', file: { file_id: 'file-1' } }]),
      'messages[0].content[0]',
    ],
    ['chat-completions', 'messages', 'several answers', { n: 2 }, 'n'],
    ['chat-completions', 'responses', 'several answers', { n: 2 }, 'n'],
    [
      'responses',
      'messages',
      'a tool of the provider’s own',
      { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
      'tools[0]',
    ],
    [
      'responses',
      'chat-completions',
      'a tool server of the provider’s own',
      { tools: [{ type: 'mcp', server_label: 'm', server_url: 'https://example.com' }] },
      'tools[0]',
    ],
    [
      'responses',
      'generate-content',
      'another provider’s file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      'input[0].content[0]',
    ],
    [
      'messages',
      'chat-completions',
      'another provider’s file',
      user([{ type: 'image', source: { type: 'file', file_id: 'file_1' } }]),
      'messages[0].content[0]',
    ],
    [
      'messages',
      'chat-completions',
      'a tool of the provider’s own',
      { tools: [{ type: 'bash_20250124', name: 'bash' }] },
      'tools[0]',
    ],
    [
      'messages',
      'generate-content',
      'a tool of the provider’s own',
      { tools: [{ type: 'bash_20250124', name: 'bash' }] },
      'tools[0]',
    ],
    [
      'generate-content',
      'messages',
      'sound',
      {
        contents: [
          { role: 'user', parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'audio/wav', data: wav } }] },
        ],
      },
      'contents[0].parts[1]',
    ],
    [
      'generate-content',
      'messages',
      'content cached at another provider',
      { cachedContent: 'cachedContents/1' },
      'cachedContent',
    ],
    [
      'generate-content',
      'chat-completions',
      'content cached at another provider',
      { cachedContent: 'cachedContents/1' },
      'cachedContent',
    ],
    [
      'generate-content',
      'messages',
      'several answers',
      config({ candidateCount: 2 }),
      'generationConfig.candidateCount',
    ],
    [
      'generate-content',
      'chat-completions',
      'a tool of the provider’s own',
      { tools: [{ googleMaps: {} }] },
      'tools[0]',
    ],
  ];

  test.each(cases)(
    '%s → %s: %s is a 400 that names its place',
    async (client, channel, _what, fields, path) => {
      await expect(losses[client](`via-${channel}`, fields)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining(path) as string,
      });
    },
  );
});

describe('what is lost on the way back', () => {
  test('a generated picture has no place in messages: the answer comes, and the header says what is missing', async () => {
    const { data, response } = await anthropic(gateway)
      .messages.create({
        model: 'via-generate-content',
        max_tokens: 500,
        messages: [{ role: 'user', content: '!image Hi' }],
      })
      .withResponse();
    expect(data.content.map(({ type }) => type)).toEqual(['text']);
    expect(listed(response.headers)).toHaveLength(1);
  });

  test('a citation reaches a client whose format has citations', async () => {
    const completion = await openai(gateway).chat.completions.create({
      model: 'via-messages',
      messages: [{ role: 'user', content: '!cite Hi' }],
    });
    expect(completion.choices[0]?.message.annotations).toMatchObject([
      { type: 'url_citation', url_citation: { url: 'https://example.com/demo', title: 'The demo' } },
    ]);
  });
});
