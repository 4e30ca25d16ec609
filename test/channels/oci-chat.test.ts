import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import oci from '../../channels/oci/index.ts';
import { Provider, type ProviderResponse } from './_provider.ts';

const commandR = 'cohere.command-r-plus-08-2024';
const endpoint = 'ocid1.generativeaiendpoint.oc1..e';
const compartment = 'ocid1.compartment.oc1..c';

let provider: Provider;

beforeAll(async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const identity = {
    kind: 'key',
    tenancy: 'ocid1.tenancy.oc1..t',
    user: 'ocid1.user.oc1..u',
    fingerprint: '20:3b:97:13',
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  } as const;
  provider = await Provider.start((url) => ({
    channels: [
      oci({ id: 'all', baseUrl: url, compartment, identity }),
      oci({
        id: 'tuned',
        baseUrl: url,
        compartment,
        identity,
        endpoints: 'cohere',
        models: { tuned: endpoint },
      }),
      oci({
        id: 'looker',
        baseUrl: url,
        compartment,
        identity,
        endpoints: 'cohere-v2',
        models: { looker: endpoint },
        traits: { '*': { reasoning: 'effort' } },
      }),
      oci({
        id: 'native',
        baseUrl: url,
        compartment,
        identity,
        models: { grok: 'xai.grok-4' },
        traits: { '*': { formats: ['oci-native'], reasoning: 'effort' } },
      }),
    ],
  }));
});
afterAll(() => provider.close());

const cohere = (more: object = {}): ProviderResponse => ({
  body: {
    modelId: commandR,
    modelVersion: '1.7',
    chatResponse: { apiFormat: 'COHERE', text: 'It rains.', finishReason: 'COMPLETE', ...more },
  },
});
const pieces = (...events: readonly object[]): ProviderResponse => ({
  headers: { 'content-type': 'text/event-stream' },
  body: Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')),
});

async function chat(body: object): Promise<Record<string, unknown>> {
  const answer = await provider.post('/v1/chat/completions', body);
  const json = (await answer.json()) as Record<string, unknown>;
  expect({ status: answer.status, json }).toMatchObject({ status: 200 });
  return json;
}

async function streamed(body: object): Promise<readonly Record<string, unknown>[]> {
  const answer = await provider.post('/v1/chat/completions', { ...body, stream: true });
  const text = await answer.text();
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, data = '']) => JSON.parse(data) as Record<string, unknown>,
  );
}

const deltas = (frames: readonly Record<string, unknown>[], member: string): readonly unknown[] =>
  frames.flatMap((frame) =>
    ((frame['choices'] ?? []) as { delta: Record<string, unknown> }[]).map(({ delta }) => delta[member]),
  );

const call = (id: string, city: string): object => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: JSON.stringify({ city }) },
});
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', description: 'Where' },
        unit: { type: 'string', enum: ['c', 'f'] },
      },
      required: ['city'],
    },
  },
};

describe('a Command R model', () => {
  test('is told what was said before, what tools gave and which there are, in one message and its history', async () => {
    provider.says(() => cohere());
    await chat({
      model: commandR,
      max_tokens: 50,
      temperature: 0.3,
      stop: 'END',
      tools: [weather],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Oslo and Rome?' },
        { role: 'assistant', tool_calls: [call('a', 'Oslo'), call('b', 'Rome')] },
        { role: 'tool', tool_call_id: 'b', content: 'sun' },
        { role: 'tool', tool_call_id: 'a', content: 'rain' },
      ],
    });
    expect(provider.paths).toEqual(['POST /20231130/actions/chat']);
    const [oslo, rome] = ['Oslo', 'Rome'].map((city) => ({ name: 'weather', parameters: { city } }));
    expect(provider.posted()).toEqual({
      compartmentId: compartment,
      servingMode: { servingType: 'ON_DEMAND', modelId: commandR },
      chatRequest: {
        apiFormat: 'COHERE',
        message: '',
        preambleOverride: 'Be brief.',
        chatHistory: [
          { role: 'USER', message: 'Oslo and Rome?' },
          { role: 'CHATBOT', message: ' ', toolCalls: [oslo, rome] },
        ],
        toolResults: [
          { call: rome, outputs: [{ output: 'sun' }] },
          { call: oslo, outputs: [{ output: 'rain' }] },
        ],
        isStream: false,
        maxTokens: 50,
        temperature: 0.3,
        stopSequences: ['END'],
        tools: [
          {
            name: 'weather',
            description: 'The weather',
            parameterDefinitions: {
              city: { type: 'str', description: 'Where', isRequired: true },
              unit: {
                type: 'str',
                description: 'JSON schema: {"type":"string","enum":["c","f"]}',
                isRequired: false,
              },
            },
          },
        ],
      },
    });
  });

  test('speaks between what tools gave and what a user says next', async () => {
    provider.says(() => cohere());
    await chat({
      model: commandR,
      messages: [
        { role: 'user', content: 'Oslo?' },
        { role: 'assistant', content: 'I look.', tool_calls: [call('a', 'Oslo')] },
        { role: 'tool', tool_call_id: 'a', content: 'rain' },
        { role: 'user', content: 'And tomorrow?' },
      ],
    });
    expect(provider.posted()['chatRequest']).toMatchObject({
      message: 'And tomorrow?',
      chatHistory: [
        { role: 'USER' },
        { role: 'CHATBOT', message: 'I look.' },
        { role: 'TOOL', toolResults: [{ outputs: [{ output: 'rain' }] }] },
        { role: 'CHATBOT', message: 'OK.' },
      ],
    });
  });

  test('reads texts that come as files as documents, and its citations name them', async () => {
    const citation = { start: 0, end: 2, text: 'It', documentIds: ['doc_0'] };
    provider.says(() => cohere({ citations: [citation] }));
    const data = Buffer.from('Rain in Oslo.').toString('base64');
    const body = await chat({
      model: commandR,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Weather?' },
            { type: 'file', file: { filename: 'news.txt', file_data: `data:text/plain;base64,${data}` } },
          ],
        },
      ],
    });
    expect(provider.posted()['chatRequest']).toMatchObject({
      message: 'Weather?',
      documents: [{ title: 'news.txt', text: 'Rain in Oslo.' }],
    });
    expect(body).toMatchObject({
      choices: [{ message: { annotations: [{ url_citation: { start_index: 0, end_index: 2 } }] } }],
    });
  });

  test('streams its text once, although the end says all of it again', async () => {
    provider.says(() =>
      pieces(
        { apiFormat: 'COHERE', text: 'It ', pad: 'aaa' },
        { apiFormat: 'COHERE', text: 'rains.', pad: 'a' },
        {
          apiFormat: 'COHERE',
          text: 'It rains.',
          chatHistory: [{ role: 'USER', message: 'Hi' }],
          finishReason: 'MAX_TOKENS',
          usage: { promptTokens: 6, completionTokens: 2, totalTokens: 8 },
        },
      ),
    );
    const frames = await streamed({ model: commandR, messages: [{ role: 'user', content: 'Hi' }] });
    expect(provider.posted()['chatRequest']).toMatchObject({
      isStream: true,
      streamOptions: { isIncludeUsage: true },
    });
    expect(deltas(frames, 'content').join('')).toBe('It rains.');
    expect(JSON.stringify(frames)).toContain('"finish_reason":"length"');
  });

  test('streams a text and calls that come with the end alone', async () => {
    const toolCalls = [{ name: 'weather', parameters: { city: 'Oslo' } }];
    provider.says(() =>
      pieces({ apiFormat: 'COHERE', text: 'I look.', toolCalls, finishReason: 'COMPLETE' }),
    );
    const frames = await streamed({ model: commandR, messages: [{ role: 'user', content: 'Hi' }] });
    expect(deltas(frames, 'content').join('')).toBe('I look.');
    expect(JSON.stringify(frames)).toContain('"finish_reason":"tool_calls"');
    const starts = JSON.stringify(frames).match(/"name":"weather"/g);
    expect(starts).toHaveLength(1);
    expect(JSON.stringify(frames)).toContain(JSON.stringify('{"city":"Oslo"}'));
  });

  test('that breaks off is an error, and its sentence reaches the client', async () => {
    const broken = { finishReason: 'ERROR', errorMessage: 'The model is out of breath.', text: 'It' };
    provider.says(() => cohere(broken));
    const answer = await provider.post('/v1/chat/completions', {
      model: commandR,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain('out of breath');
    provider.says(() => pieces({ apiFormat: 'COHERE', text: 'It' }, { apiFormat: 'COHERE', ...broken }));
    const frames = await streamed({ model: commandR, messages: [{ role: 'user', content: 'Hi' }] });
    expect(JSON.stringify(frames)).toContain('out of breath');
  });

  test('takes no images, and says so', async () => {
    provider.says(() => cohere());
    const answer = await provider.post('/v1/chat/completions', {
      model: commandR,
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
        },
      ],
    });
    expect(answer.status).toBe(400);
    expect(provider.requests).toEqual([]);
  });
});

describe('an endpoint of the account', () => {
  test('is asked by its address, in the words that the config says', async () => {
    provider.says(() => cohere());
    await chat({ model: 'tuned', messages: [{ role: 'user', content: 'Hi' }] });
    expect(provider.posted()).toMatchObject({
      servingMode: { servingType: 'DEDICATED', endpointId: endpoint },
      chatRequest: { apiFormat: 'COHERE', message: 'Hi' },
    });
  });
});

describe('a Command A model', () => {
  const model = 'looker';
  const v2 = (message: object, more: object = {}): ProviderResponse => ({
    body: {
      modelId: 'cohere.command-a-vision',
      chatResponse: { apiFormat: 'COHEREV2', message, finishReason: 'COMPLETE', ...more },
    },
  });

  test('is shown pictures and texts that come as files, and its thinking and citations are read', async () => {
    provider.says(() =>
      v2(
        {
          role: 'ASSISTANT',
          content: [
            { type: 'THINKING', thinking: 'So.' },
            { type: 'TEXT', text: 'A cat.' },
          ],
          citations: [{ start: 0, end: 5, text: 'A cat', sources: [{ type: 'DOCUMENT', id: 'doc_0' }] }],
        },
        { usage: { promptTokens: 9, completionTokens: 4, totalTokens: 13 } },
      ),
    );
    const url = 'data:image/png;base64,iVBORw0KGgo=';
    const text = Buffer.from('Cats are animals.').toString('base64');
    const answer = await chat({
      model,
      reasoning_effort: 'low',
      stop: 'END',
      messages: [
        { role: 'developer', content: 'Be short.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url, detail: 'low' } },
            { type: 'file', file: { file_data: `data:text/plain;base64,${text}`, filename: 'cats.txt' } },
          ],
        },
      ],
    });
    expect(provider.posted()).toMatchObject({
      servingMode: { servingType: 'DEDICATED', endpointId: endpoint },
      chatRequest: {
        apiFormat: 'COHEREV2',
        isStream: false,
        thinking: { type: 'ENABLED' },
        stopSequences: ['END'],
        messages: [
          { role: 'SYSTEM', content: [{ type: 'TEXT', text: 'Be short.' }] },
          {
            role: 'USER',
            content: [
              { type: 'TEXT', text: 'What is it?' },
              { type: 'IMAGE_URL', imageUrl: { url, detail: 'LOW' } },
              { type: 'DOCUMENT', document: { title: 'cats.txt', text: 'Cats are animals.' } },
            ],
          },
        ],
      },
    });
    expect(answer).toMatchObject({
      choices: [
        {
          message: {
            content: 'A cat.',
            reasoning_content: 'So.',
            annotations: [{ type: 'url_citation', url_citation: { start_index: 0, end_index: 5 } }],
          },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 4 },
    });
  });

  test('is told calls and what they gave by their ids, and need not call where that is not wanted', async () => {
    provider.says(() => v2({ role: 'ASSISTANT', content: [{ type: 'TEXT', text: 'Rain.' }] }));
    await chat({
      model,
      tools: [weather],
      tool_choice: 'none',
      reasoning_effort: 'none',
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: null, tool_calls: [call('call_1', 'Bern')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
      ],
    });
    expect(provider.posted()).toMatchObject({
      chatRequest: {
        toolsChoice: 'NONE',
        thinking: { type: 'DISABLED' },
        tools: [{ type: 'FUNCTION', function: weather.function }],
        messages: [
          {},
          {
            role: 'ASSISTANT',
            content: [{ type: 'TEXT', text: ' ' }],
            toolCalls: [
              { id: 'call_1', type: 'FUNCTION', function: { name: 'weather', arguments: '{"city":"Bern"}' } },
            ],
          },
          { role: 'TOOL', toolCallId: 'call_1', content: [{ type: 'TEXT', text: 'rain' }] },
        ],
      },
    });
  });

  test('streams its text and its calls once, although the end says all of it again', async () => {
    const piece = (content: object, more: object = {}) => ({
      apiFormat: 'COHEREV2',
      message: { role: 'ASSISTANT', content: [content] },
      ...more,
    });
    const toolCalls = [{ id: 'c1', type: 'FUNCTION', function: { name: 'weather', arguments: '{}' } }];
    provider.says(() =>
      pieces(
        piece({ type: 'THINKING', thinking: 'Hm' }),
        piece({ type: 'TEXT', text: 'It ' }),
        piece({ type: 'TEXT', text: 'rains.' }),
        { apiFormat: 'COHEREV2', message: { role: 'ASSISTANT', toolCalls } },
        {
          apiFormat: 'COHEREV2',
          message: { role: 'ASSISTANT', content: [{ type: 'TEXT', text: 'It rains.' }], toolCalls },
          finishReason: 'TOOL_CALL',
        },
      ),
    );
    const frames = await streamed({
      model,
      tools: [weather],
      messages: [{ role: 'user', content: 'Weather?' }],
    });
    expect(deltas(frames, 'content').join('')).toBe('It rains.');
    expect(deltas(frames, 'reasoning_content').join('')).toBe('Hm');
    const called = deltas(frames, 'tool_calls').flat() as (
      | { function: Record<string, string> }
      | undefined
    )[];
    const functions = called.flatMap((one) => (one === undefined ? [] : [one.function]));
    expect(functions.flatMap(({ name }) => name ?? [])).toEqual(['weather']);
    expect(functions.map(({ arguments: text }) => text ?? '').join('')).toBe('{}');
    expect(JSON.stringify(frames)).toContain('"finish_reason":"tool_calls"');
  });
});

describe('a model of another maker', () => {
  test('is asked in the native words where its traits say so', async () => {
    provider.says(() => ({
      body: {
        modelId: 'xai.grok-4',
        chatResponse: {
          apiFormat: 'GENERIC',
          choices: [
            {
              index: 0,
              message: { role: 'ASSISTANT', content: [{ type: 'TEXT', text: 'Hm' }], reasoningContent: 'So' },
              finishReason: 'length',
            },
          ],
          usage: {
            promptTokens: 9,
            completionTokens: 4,
            totalTokens: 13,
            promptTokensDetails: { cachedTokens: 5 },
            completionTokensDetails: { reasoningTokens: 3 },
          },
        },
      },
    }));
    const body = await chat({
      model: 'grok',
      reasoning_effort: 'low',
      parallel_tool_calls: false,
      tools: [weather],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'a', schema: { type: 'object' }, strict: true },
      },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What?' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
          ],
        },
        { role: 'assistant', tool_calls: [call('a', 'Oslo')] },
        { role: 'tool', tool_call_id: 'a', content: 'rain' },
      ],
    });
    expect(provider.posted()['chatRequest']).toMatchObject({
      apiFormat: 'GENERIC',
      reasoningEffort: 'LOW',
      isParallelToolCalls: false,
      toolChoice: { type: 'FUNCTION', name: 'weather' },
      responseFormat: {
        type: 'JSON_SCHEMA',
        jsonSchema: { name: 'a', schema: { type: 'object' }, isStrict: true },
      },
      messages: [
        {
          role: 'USER',
          content: [
            { type: 'TEXT', text: 'What?' },
            { type: 'IMAGE_URL', imageUrl: { url: 'https://example.com/a.png', detail: 'LOW' } },
          ],
        },
        {
          role: 'ASSISTANT',
          content: null,
          toolCalls: [{ type: 'FUNCTION', id: 'a', name: 'weather', arguments: '{"city":"Oslo"}' }],
        },
        { role: 'TOOL', toolCallId: 'a', content: [{ type: 'TEXT', text: 'rain' }] },
      ],
    });
    expect(body).toMatchObject({
      model: 'grok',
      choices: [{ message: { content: 'Hm', reasoning_content: 'So' }, finish_reason: 'length' }],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 4,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    });
  });

  test('searches the web, and takes the answer that a client predicts', async () => {
    const urlCitation = { startIndex: 0, endIndex: 4, title: 'Rain', url: 'https://a.example/rain' };
    const message = {
      role: 'ASSISTANT',
      content: [{ type: 'TEXT', text: 'Rain' }],
      annotations: [{ type: 'URL_CITATION', urlCitation }],
    };
    const completionTokensDetails = { acceptedPredictionTokens: 2, rejectedPredictionTokens: 1 };
    provider.says(() => ({
      body: {
        modelId: 'xai.grok-4',
        chatResponse: {
          apiFormat: 'GENERIC',
          choices: [{ index: 0, message, finishReason: 'stop' }],
          usage: { promptTokens: 9, completionTokens: 4, totalTokens: 13, completionTokensDetails },
        },
      },
    }));
    const approximate = { city: 'Oslo', country: 'NO', timezone: 'Europe/Oslo' };
    const body = await chat({
      model: 'grok',
      messages: [{ role: 'user', content: 'Weather?' }],
      prediction: { type: 'content', content: 'Rain' },
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate },
      },
    });
    expect(provider.posted()['chatRequest']).toMatchObject({
      prediction: { type: 'CONTENT', content: [{ type: 'TEXT', text: 'Rain' }] },
      webSearchOptions: { searchContextSize: 'LOW', userLocation: approximate },
    });
    expect(body).toMatchObject({
      choices: [
        {
          message: {
            content: 'Rain',
            annotations: [
              {
                type: 'url_citation',
                url_citation: { start_index: 0, end_index: 4, title: 'Rain', url: 'https://a.example/rain' },
              },
            ],
          },
        },
      ],
    });
  });

  test('streams parallel calls whose pieces name only the call that they begin', async () => {
    const toolCall = (piece: object): object => ({
      index: 0,
      message: { role: 'ASSISTANT', toolCalls: [piece] },
    });
    provider.says(() =>
      pieces(
        toolCall({ type: 'FUNCTION', id: 'a', name: 'weather', arguments: '' }),
        toolCall({ arguments: '{"city":' }),
        toolCall({ arguments: '"Oslo"}' }),
        toolCall({ type: 'FUNCTION', id: 'b', name: 'weather', arguments: '{"city":"Rome"}' }),
        { message: { role: 'ASSISTANT', content: [{ type: 'TEXT', text: '' }] }, finishReason: 'tool_calls' },
        { usage: { promptTokens: 4, completionTokens: 8, totalTokens: 12 } },
      ),
    );
    const frames = await streamed({ model: 'grok', messages: [{ role: 'user', content: 'Hi' }] });
    const calls: Record<number, string> = {};
    for (const piece of deltas(frames, 'tool_calls').flat()) {
      if (piece === undefined) continue;
      const { index, function: own } = piece as { index: number; function?: { arguments?: string } };
      calls[index] = (calls[index] ?? '') + (own?.arguments ?? '');
    }
    expect(calls).toEqual({ 0: '{"city":"Oslo"}', 1: '{"city":"Rome"}' });
  });
});
