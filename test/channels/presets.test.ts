import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importedAs, kindFiles } from '../support/kind-files.ts';
import { voices } from '../flows/_wire.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { presetKind, presets, type Kind } from './_presets.ts';

type Json = Record<string, unknown>;

const names = Object.keys(presets);

/** Values of settings in generateContent and their fields in chat completions, by the names in traits. */
const settings: Readonly<Record<string, { readonly value: unknown; readonly field: string }>> = {
  temperature: { value: 0.5, field: 'temperature' },
  topP: { value: 0.9, field: 'top_p' },
  topK: { value: 5, field: 'top_k' },
  seed: { value: 7, field: 'seed' },
  frequencyPenalty: { value: 0.1, field: 'frequency_penalty' },
  presencePenalty: { value: 0.2, field: 'presence_penalty' },
};

let gateway: TestGateway;
let upstream: ScriptedUpstream;
const kinds = new Map<string, Kind>();

const refused = (name: string): readonly string[] => {
  const parts = kinds.get(name)?.spec.setup(
    {
      ...kinds.get(name)?.spec.options?.parse(presets[name]?.options ?? {}),
      baseUrl: 'http://127.0.0.1',
    },
    { keys: ['k'], http: {}, sockets: {}, format: () => undefined, onClose: () => {} } as never,
  );
  return parts?.traits?.(presets[name]?.model ?? '').refuses ?? [];
};

beforeAll(async () => {
  for (const name of names) kinds.set(name, await presetKind(name));
  upstream = await startUpstream((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[{"id":"listed"}]}');
      return;
    }
    const { stream } = JSON.parse(request.body.toString()) as { stream?: boolean };
    const voice = voices['chat-completions'];
    response.writeHead(200, { 'content-type': stream === true ? 'text/event-stream' : 'application/json' });
    response.end(stream === true ? voice.frames(['hello']).join('') : JSON.stringify(voice.whole('hello')));
  });
  gateway = await startGateway({
    channels: names.map((name) =>
      kinds.get(name)?.({
        ...presets[name]?.options,
        id: name,
        key: `key-of-${name}`,
        baseUrl: `${upstream.url}/${name}`,
        models: { [`via/${name}`]: presets[name]?.model ?? '' },
      }),
    ),
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const post = (path: string, body: Json): Promise<Response> =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const hi = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };

describe.each(names)('%s', (name) => {
  const { model } = presets[name] ?? { model: '' };

  test('is reached at its path with its key, and the name that its model has there', async () => {
    upstream.requests.length = 0;
    const answer = await post(`/v1beta/models/via/${name}:generateContent`, {
      ...hi,
      generationConfig: { maxOutputTokens: 30 },
    });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 200,
      body: { candidates: [{ content: { parts: [{ text: 'hello' }] } }] },
    });
    // Providers that list prices are asked for them meanwhile.
    const request = upstream.requests.find(({ method }) => method === 'POST');
    expect(request?.url).toBe(`/${name}/chat/completions`);
    expect(JSON.stringify(request?.headers)).toContain(`key-of-${name}`);
    const sent = JSON.parse(request?.body.toString() ?? '') as Json;
    expect(sent).toMatchObject({ model });
    expect([sent['max_tokens'], sent['max_completion_tokens']].filter((limit) => limit === 30)).toHaveLength(
      1,
    );
  });

  test('streams', async () => {
    const answer = await post(`/v1beta/models/via/${name}:streamGenerateContent?alt=sse`, hi);
    const text = await answer.text();
    expect(text).toContain('STOP');
    expect(text).toContain('hello');
  });

  test('gets no setting that its model refuses, and whoever asked for one is told', async () => {
    upstream.requests.length = 0;
    const answer = await post(`/v1beta/models/via/${name}:generateContent`, {
      ...hi,
      generationConfig: Object.fromEntries(Object.entries(settings).map(([key, { value }]) => [key, value])),
    });
    expect(answer.status).toBe(200);
    const lost = answer.headers.get('x-sluice-loss') ?? '';
    const sent = JSON.parse(upstream.requests[0]?.body.toString() ?? '') as Json;
    const refuses = refused(name);
    for (const [setting, { value, field }] of Object.entries(settings)) {
      if (refuses.includes(setting)) {
        expect(sent).not.toHaveProperty(field);
        expect(lost).toContain(setting);
      } else expect(sent).toMatchObject({ [field]: value });
    }
  });

  test.skipIf(name === 'sluice')('says where its facts come from', () => {
    const text = readFileSync(kindFiles.get(name) ?? name, 'utf8');
    expect(/https:\/\/\S+/.test(text)).toBe(true);
  });
});

test('a gateway of the operator’s own choice needs its address and gets it from the config alone', async () => {
  const { default: openaiCompatible } = await import('../../channels/openai-compatible.ts');
  const { default: anthropicCompatible } = await import('../../channels/anthropic-compatible.ts');
  const { default: geminiCompatible } = await import('../../channels/gemini-compatible.ts');
  const seen = await startUpstream((request, response) => {
    const { pathname } = new URL(request.url, 'http://provider');
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.method === 'GET') {
      const name = pathname.split('/')[1];
      response.end(JSON.stringify({ data: [{ id: `${name}-model` }] }));
    } else if (pathname.startsWith('/claude')) response.end(JSON.stringify(voices.messages.whole('hello')));
    else if (pathname.startsWith('/gem'))
      response.end(JSON.stringify(voices['generate-content'].whole('hello')));
    else response.end(JSON.stringify(voices['chat-completions'].whole('hello')));
  });
  const own = await startGateway({
    channels: [
      openaiCompatible({ name: 'acme', baseUrl: `${seen.url}/open/v1`, key: 'k1' }),
      anthropicCompatible({ name: 'claudine', baseUrl: `${seen.url}/claude/v1`, key: 'k2', auth: 'bearer' }),
      geminiCompatible({ name: 'gemma', baseUrl: `${seen.url}/gem/v1beta`, key: 'k3' }),
    ],
  });
  try {
    for (const [model, path, header, value] of [
      ['open-model', '/open/v1/chat/completions', 'authorization', 'Bearer k1'],
      ['claude-model', '/claude/v1/messages', 'authorization', 'Bearer k2'],
      ['gem-model', '/gem/v1beta/models/gem-model:generateContent', 'x-goog-api-key', 'k3'],
    ] as const) {
      await expect
        .poll(async () => {
          const answer = await fetch(`${own.url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${own.key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
          });
          return answer.status;
        })
        .toBe(200);
      const request = seen.requests.findLast(({ method }) => method === 'POST');
      expect(request?.url).toBe(path);
      expect(request?.headers[header]).toBe(value);
    }
  } finally {
    await own.close();
    await seen.close();
  }
});

test('every channel kind that is made like those of chat completions stands in a table of tests', () => {
  const others = ['kinds.test.ts', 'perplexity.test.ts']
    .map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'))
    .join('\n');
  const alike = [...kindFiles].filter(([, file]) => readFileSync(file, 'utf8').includes('openaiLike('));
  expect(alike.length).toBeGreaterThan(30);
  expect(
    alike
      .filter(([name, file]) => !names.includes(name) && !others.includes(importedAs(file)))
      .map(([name]) => name),
  ).toEqual([]);
});
