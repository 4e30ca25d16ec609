import { expect, onTestFinished, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import gemini from '../../../channels/gemini.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startAnthropicObjects } from '../../support/anthropic-objects.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { connectionOf } from '../../support/sqlite.ts';
import { startStage } from './_stage.ts';

/** A gateway whose store takes no new objects, before providers of two APIs. */
async function startFull() {
  const claude = await startAnthropicObjects();
  const google = await startGeminiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects()],
    channels: [
      anthropic({ key: 'sk-ant-of-a', baseUrl: `${claude.url}/v1`, models: ['claude-a'] }),
      gemini({ key: 'AIza-of-a', baseUrl: `${google.url}/v1beta`, models: ['gemini-a'] }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([claude.close(), google.close()]);
  });
  connectionOf(gateway.stores).exec(
    "CREATE TRIGGER full BEFORE INSERT ON provider_objects BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  );
  const send = (path: string, body: object) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        'x-api-key': gateway.key,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
  return { claude, google, send };
}

const lastOf = ({ requests }: { readonly requests: readonly { method: string; path: string }[] }) =>
  requests.map(({ method, path }) => `${method} ${path}`).at(-1);

test('a message batch that cannot be kept is cancelled, because one that runs cannot be deleted', async () => {
  const { claude, send } = await startFull();
  const params = { model: 'claude-a', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await send('/v1/messages/batches', { requests: [{ custom_id: 'one', params }] });
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('5');
  await answer.body?.cancel();
  expect(lastOf(claude)).toMatch(/^POST \/v1\/messages\/batches\/msgbatch\w+\/cancel$/);
  expect([...claude.batches.values()]).toMatchObject([{ processing_status: 'canceling' }]);
});

test('a batch of generateContent that cannot be kept is cancelled', async () => {
  const { google, send } = await startFull();
  const request = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] };
  const answer = await send('/v1beta/models/gemini-a:batchGenerateContent', {
    batch: { displayName: 'one', inputConfig: { requests: { requests: [{ request }] } } },
  });
  expect(answer.status).toBe(503);
  await answer.body?.cancel();
  expect(lastOf(google)).toMatch(/^POST \/v1beta\/batches\/[\w-]+:cancel$/);
});

test('a cached content that cannot be kept is deleted', async () => {
  const { google, send } = await startFull();
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
  const answer = await send('/v1beta/cachedContents', { model: 'models/gemini-a', contents });
  expect(answer.status).toBe(503);
  await answer.body?.cancel();
  expect(lastOf(google)).toMatch(/^DELETE \/v1beta\/cachedContents\/[\w-]+$/);
});

test('a request goes to the provider without credentials, cookies and what is for the gateway alone', async () => {
  const { a, gateway, client } = await startStage();
  const mine = await client();
  const { id } = await mine.vectorStores.create({ name: 'notes' });
  const query = `key=${mine.apiKey}&access_token=t&channel=a&limit=5&include[]=x&a%20b=c`;
  const answer = await fetch(`${gateway.url}/v1/vector_stores/${id}/files?${query}`, {
    headers: {
      authorization: `Bearer ${mine.apiKey}`,
      cookie: 'session=secret',
      'x-sluice-channel': 'a',
      'openai-beta': 'assistants=v2',
    },
  });
  expect(answer.status).toBe(200);
  await answer.body?.cancel();
  const { headers, query: sent } = a.requests.at(-1) ?? {};
  expect(Object.fromEntries(sent ?? [])).toEqual({ limit: '5', 'include[]': 'x' });
  expect(headers).toMatchObject({ authorization: 'Bearer sk-of-a', 'openai-beta': 'assistants=v2' });
  expect(headers).not.toHaveProperty('cookie');
  expect(headers).not.toHaveProperty('x-sluice-channel');
});
