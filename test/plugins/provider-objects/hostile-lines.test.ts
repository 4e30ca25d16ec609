import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI, { toFile } from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import gemini from '../../../channels/gemini.ts';
import openai from '../../../channels/openai.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startAnthropicObjects } from '../../support/anthropic-objects.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';

const limits = { values: 5000, depth: 20 };

/** A gateway with small limits before one provider of each API, and the official SDKs. */
async function start() {
  const [chat, messages, content] = [
    await startOpenaiObjects(),
    await startAnthropicObjects(),
    await startGeminiObjects(),
  ];
  const gateway = await startGateway({
    limits,
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    channels: [
      openai({ key: 'k', baseUrl: `${chat.url}/v1`, models: ['gpt-a'] }),
      anthropic({ key: 'k', baseUrl: `${messages.url}/v1`, models: ['claude-a'] }),
      gemini({ key: 'k', baseUrl: `${content.url}/v1beta`, models: ['gemini-a'] }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([chat.close(), messages.close(), content.close()]);
  });
  const { value: apiKey } = await gateway.apiKeys.create({ name: 'one' });
  return {
    providers: { chat, messages, content },
    openai: new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: gateway.url, apiKey, maxRetries: 0 }),
    genai: new GoogleGenAI({ apiKey, httpOptions: { baseUrl: gateway.url } }),
  };
}

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const fields = (count: number): string =>
  Array.from({ length: count }, (_, index) => `"f${index}":1`).join(',');
const hello = '"messages":[{"role":"user","content":"Hello"}]';

/** A line of a batch with this JSON as its body. */
const lineOf = (body: string): string => `{"custom_id":"a","url":"/v1/chat/completions","body":${body}}`;

/** Lines that a batch must not be made of: too much work, or read by some providers as another request. */
const hostile: readonly (readonly [name: string, line: string, reason: string])[] = [
  ['many values', lineOf(`{"model":"gpt-a","messages":[${'{},'.repeat(6000)}{}]}`), 'more than 5000 values'],
  ['deep nesting', lineOf(`{"model":"gpt-a",${hello},"user":${nested(30)}}`), 'deeper than 20 levels'],
  ['many fields', lineOf(`{"model":"gpt-a",${hello},${fields(2500)}}`), 'more than 2000 fields'],
  ['a second model in another case', lineOf(`{"model":"gpt-a",${hello},"Model":"gpt-b"}`), '"model"'],
  [
    'a second body in another case',
    `{"Body":{"model":"gpt-b",${hello}},${lineOf(`{"model":"gpt-a",${hello}}`).slice(1)}`,
    'the fields .Body. and .body. as one',
  ],
  ['a model given twice', lineOf(`{"model":"gpt-b","model":"gpt-a",${hello}}`), 'has a duplicate field'],
  [
    'a body given twice',
    `{"body":{"model":"gpt-b",${hello}},${lineOf(`{"model":"gpt-a",${hello}}`).slice(1)}`,
    'has a duplicate field',
  ],
  [
    'a line in the line, behind a carriage return',
    lineOf(`{"model":"gpt-a",${hello},"metadata":\r${lineOf(`{"model":"gpt-b",${hello}}`)}\r}`),
    'carriage return',
  ],
];

describe.each(hostile)('a batch file with %s', (_, line, reason) => {
  const text = Buffer.from(`${lineOf(`{"model":"gpt-a",${hello}}`)}\n${line}\n`);
  const begin = (client: OpenAI, file: string) =>
    client.batches.create({
      input_file_id: file,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
  const refused = { status: 400, message: expect.stringMatching(`Request 2: .*${reason}`) };

  test('uploaded as a form: no batch is made of it', async () => {
    const { openai: client, providers } = await start();
    const file = await client.files.create({ file: await toFile(text, 'a.jsonl'), purpose: 'batch' });
    await expect(begin(client, file.id)).rejects.toMatchObject(refused);
    expect(providers.chat.batches.size).toBe(0);
  });

  test('uploaded in parts: no batch is made of it', async () => {
    const { openai: client, providers } = await start();
    const { id } = await client.uploads.create({
      bytes: text.length,
      filename: 'a.jsonl',
      mime_type: 'application/jsonl',
      purpose: 'batch',
    });
    const part = await client.uploads.parts.create(id, { data: await toFile(text, 'a') });
    const { file } = await client.uploads.complete(id, { part_ids: [part.id] });
    await expect(begin(client, file?.id ?? '')).rejects.toMatchObject(refused);
    // What was found out is kept, so that the file is read once.
    await expect(begin(client, file?.id ?? '')).rejects.toMatchObject(refused);
    expect(providers.chat.batches.size).toBe(0);
  });

  test('uploaded in a resumable upload: no batch is made of it', async () => {
    const { genai, providers } = await start();
    const convertLine = (body: string): string =>
      body
        .replaceAll('"messages"', '"contents"')
        .replaceAll('"body"', '"request"')
        .replaceAll('"Body"', '"Request"');
    const file = await genai.files.upload({
      file: new Blob([convertLine(text.toString()).replaceAll('gpt-', 'gemini-')]),
      config: { mimeType: 'application/jsonl' },
    });
    const batch = genai.batches.create({ model: 'gemini-a', src: { fileName: file.name ?? '' } });
    await expect(batch).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching('Request 2: .*'),
    });
    expect(providers.content.batches.size).toBe(0);
  });
});

test('a line of more than 16 MiB is told with the limit, and nothing of it is held', async () => {
  const { openai: client } = await start();
  const line = lineOf(
    `{"model":"gpt-a","messages":[{"role":"user","content":"${'x'.repeat(17 * 1024 * 1024)}"}]}`,
  );
  const file = await client.files.create({
    file: await toFile(Buffer.from(line), 'a.jsonl'),
    purpose: 'batch',
  });
  await expect(
    client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    }),
  ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('more than 16777216 bytes') });
});

describe('a batch in the body', () => {
  const params = { model: 'claude-a', max_tokens: 10, messages: [{ role: 'user' as const, content: 'Hi' }] };

  test.each([
    ['names its model in another case', { ...params, Model: 'claude-b' }, 'requests[1].params.Model'],
    ['names a field twice but for its case', { ...params, Messages: [] }, 'requests[1].params.Messages'],
    ['has too many fields', { ...params, ...JSON.parse(`{${fields(2500)}}`) }, 'requests[1].params'],
  ])('of messages is refused where a request %s', async (_, hostileParams, param) => {
    const { anthropic: client, providers } = await start();
    const requests = [
      { custom_id: 'a', params },
      { custom_id: 'b', params: hostileParams },
    ];
    await expect(client.messages.batches.create({ requests })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(param),
    });
    expect(providers.messages.batches.size).toBe(0);
  });

  test('of messages is refused where it has two lists of requests', async () => {
    const { anthropic: client, providers } = await start();
    const requests = [{ custom_id: 'a', params }];
    await expect(
      client.messages.batches.create({ requests, Requests: requests } as { requests: typeof requests }),
    ).rejects.toMatchObject({ status: 400 });
    expect(providers.messages.batches.size).toBe(0);
  });

  test.each([
    ['a request', { contents: 'Hi', Model: 'models/gemini-b' }],
    ['many fields', { contents: 'Hi', ...JSON.parse(`{${fields(2500)}}`) }],
  ])('of generateContent is refused for %s', async (_, request) => {
    const { genai, providers } = await start();
    const { apiClient } = genai as unknown as {
      apiClient: { clientOptions: { apiKey: string; httpOptions: { baseUrl: string } } };
    };
    const { apiKey, httpOptions } = apiClient.clientOptions;
    const answer = await fetch(`${httpOptions.baseUrl}/v1beta/models/gemini-a:batchGenerateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ batch: { inputConfig: { requests: { requests: [{ request }] } } } }),
    });
    expect(answer.status).toBe(400);
    await answer.body?.cancel();
    expect(providers.content.batches.size).toBe(0);
  });
});
