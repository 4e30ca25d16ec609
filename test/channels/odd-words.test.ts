import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import { Provider } from './_provider.ts';

// What every object of JavaScript has: a table that is asked for such a word must not answer.
const words = ['constructor', 'toString', '__proto__', 'hasOwnProperty'];

let provider: Provider;
beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      openai({
        key: 'k',
        baseUrl: url,
        models: ['chat', 'responses', 'dall-e-9'],
        traits: { chat: { formats: ['chat-completions'] }, responses: { formats: ['responses'] } },
      }),
      anthropic({ key: 'k', baseUrl: url, models: ['claude'] }),
      gemini({ key: 'k', baseUrl: url, models: ['gemini'] }),
    ],
  }));
});
afterAll(() => provider.close());

const text = 'Hello.';
const ends: Readonly<Record<string, (word: string) => object>> = {
  chat: (finish_reason) => ({
    id: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason }],
  }),
  responses: (reason) => ({
    id: 'r',
    object: 'response',
    status: 'incomplete',
    incomplete_details: { reason },
    output: [{ id: 'm', type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }],
  }),
  claude: (stop_reason) => ({
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason,
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
  gemini: (finishReason) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason }],
  }),
};
const clients: Readonly<Record<string, (model: string) => readonly [path: string, body: object]>> = {
  'chat completions': (model) => [
    '/v1/chat/completions',
    { model, messages: [{ role: 'user', content: 'Hi.' }] },
  ],
  responses: (model) => ['/v1/responses', { model, input: 'Hi.' }],
  messages: (model) => [
    '/v1/messages',
    { model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi.' }] },
  ],
  generateContent: (model) => [
    `/v1beta/models/${model}:generateContent`,
    { contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }] },
  ],
};
const known =
  /"(?:finish_reason|stop_reason|finishReason|status)":"(?:stop|length|content_filter|end_turn|max_tokens|refusal|STOP|OTHER|MAX_TOKENS|completed|incomplete)"/;

describe.each(words)('the word %s', (word) => {
  test.each(Object.keys(ends))(
    'ends an answer of %s for a client of each other format as any unknown word does',
    async (model) => {
      provider.says(() => ({ body: ends[model]?.(word) }));
      for (const [client, requestFor] of Object.entries(clients)) {
        const own = {
          chat: 'chat completions',
          responses: 'responses',
          claude: 'messages',
          gemini: 'generateContent',
        };
        if (own[model as keyof typeof own] === client) continue;
        const answer = await provider.post(...requestFor(model));
        const answerText = await answer.text();
        expect([client, answer.status, answerText]).toEqual([client, 200, expect.stringMatching(known)]);
        expect(answerText).toContain(text);
      }
    },
  );

  test('is a wish like any unknown one in thinking', async () => {
    provider.says(() => ({ body: ends['claude']?.('end_turn') }));
    const [path, body] = clients['chat completions']?.('claude') ?? ['', {}];
    const answer = await provider.post(path, { ...body, thinking: { type: word } });
    expect(answer.status).toBe(200);
    expect(provider.posted()).not.toHaveProperty('thinking');
  });

  test('is no output of a tool in responses', async () => {
    provider.says(() => ({ body: ends['responses']?.('max_output_tokens') }));
    const input = [
      { role: 'user', content: 'Hi.' },
      { type: word, call_id: 'x' },
    ];
    const answer = await provider.post('/v1/responses', { model: 'responses', input });
    expect(await answer.text()).not.toContain('native code');
    expect(answer.status).toBe(200);
  });

  test('reserves what an unknown quality of images does', async () => {
    provider.says(() => ({ body: { created: 1, data: [{ b64_json: 'AAAA' }] } }));
    const answer = await provider.post('/v1/images/generations', {
      model: 'dall-e-9',
      prompt: 'A cat',
      quality: word,
    });
    expect(answer.status).toBe(200);
  });
});
