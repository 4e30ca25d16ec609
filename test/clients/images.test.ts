import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { checkLegal } from '../support/legal-images.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { eventually } from '../support/eventually.ts';
import { uploadNames } from '../support/uploads.ts';
import {
  base64,
  contents,
  event,
  jsonOf,
  linked,
  official,
  older,
  png,
  pngOf,
  predicted,
  rows,
  sent,
  sendJson,
  type Answering,
} from './image-providers.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let answer: Answering;

beforeAll(async () => {
  upstream = await startUpstream((request, response) =>
    request.url.startsWith('/files/')
      ? void response
          .writeHead(request.url.endsWith('.png') ? 200 : 404, { 'content-type': 'image/png' })
          .end(png)
      : answer(request, response),
  );
  const at = (models: readonly string[], path = '/v1') => ({
    key: 'provider-key',
    baseUrl: upstream.url + path,
    models,
  });
  gateway = await startGateway({
    // The ids of files below were made elsewhere.
    plugins: [providerObjects({ foreign: 'pass' })],
    channels: [
      demo(),
      openaiChannel({ ...at(['gpt-image-1', 'dall-e-2', 'dall-e-3']), id: 'official' }),
      openaiChannel({ ...at(['links']), id: 'links', traits: { links: { images: { delivers: 'url' } } } }),
      geminiChannel(at(['gemini-2.5-flash-image', 'imagen-4.0-generate-001'], '/v1beta')),
      openaiChannel({ ...at(['shared'], '/first/v1'), id: 'first', priority: 1 }),
      openaiChannel({ ...at(['shared'], '/second/v1'), id: 'second' }),
    ],
    prices: { 'dall-e-2': { perImage: 0.02 }, 'imagen-*': { perImage: 0.04 } },
    limits: { image: 8 * 1024 * 1024, inMemory: 512 },
    health: { failures: 1000 },
    fetch: { allow: ['127.0.0.1'] },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

const client = (key = gateway.key): OpenAI =>
  new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1`, maxRetries: 0, logLevel: 'off' });

const pngFile = (name = 'bild ä.png', bytes = png) => toFile(bytes, name, { type: 'image/png' });

function expectRequestTo(url: string | undefined): void {
  if (url === '') return;
  const posts = upstream.requests.filter((request) => request.method === 'POST');
  expect(new Set(posts.map((request) => request.url))).toEqual(new Set([url]));
  const { headers } = posts[0] ?? {};
  expect(headers?.authorization ?? headers?.['x-goog-api-key']).toContain('provider-key');
}

const isPng = (text: string | undefined): boolean =>
  Buffer.from(text ?? '', 'base64').toString('latin1', 0, 4) === '\x89PNG';

describe('POST /v1/images/generations, by the official client', () => {
  test.each(rows('generate'))('%s: in base64', async (model, { urls, ...provider }) => {
    ({ answer } = provider);
    const reply = await client().images.generate({
      model,
      prompt: 'a cat',
      response_format: 'b64_json',
    });
    expect(reply.data).toHaveLength(1);
    expect(isPng(reply.data?.[0]?.b64_json)).toBe(true);
    expect(reply.created).toBeGreaterThan(1_600_000_000);
    expectRequestTo(urls.generate);
  });

  test.each(rows('generate').filter(([model]) => model !== 'links'))(
    '%s: several',
    async (model, provider) => {
      ({ answer } = provider);
      const { data, usage: used } = await client().images.generate({ model, prompt: 'a cat', n: 3 });
      expect(data).toHaveLength(3);
      expect(data?.every(({ url, b64_json: bytes }) => url !== undefined || isPng(bytes))).toBe(true);
      if (model === 'gemini-2.5-flash-image') {
        expect(upstream.requests).toHaveLength(3);
        expect(used).toMatchObject({
          total_tokens: 450,
          input_tokens_details: { text_tokens: 30, image_tokens: 120 },
        });
      } else expect(upstream.requests.length).toBeLessThan(2);
    },
  );

  test.each(rows('generate'))('%s: as a stream', async (model, provider) => {
    ({ answer } = provider);
    const events: string[] = [];
    const stream = await client().images.generate({
      model,
      prompt: 'a cat',
      stream: true,
      partial_images: 2,
    });
    for await (const one of stream) {
      events.push(one.type);
      expect(isPng(one.b64_json)).toBe(true);
      expect(one.created_at).toBeGreaterThan(1_600_000_000);
    }
    const sketches = provider.streams ? ['partial_image', 'partial_image'] : [];
    expect(events).toEqual([...sketches, 'completed'].map((kind) => `image_generation.${kind}`));
    expectRequestTo(provider.urls.generate);
  });

  test('the same words make the same image, and others another', async () => {
    const made = async (prompt: string): Promise<string | undefined> =>
      (await client().images.generate({ model: 'demo', prompt, size: '256x256' })).data?.[0]?.b64_json;
    const [first, second, other] = [await made('a cat'), await made('a cat'), await made('a dog')];
    expect(first).toBe(second);
    expect(first).not.toBe(other);
    expect(Buffer.from(first ?? '', 'base64').readUInt32BE(16)).toBe(256);
  });

  test('a wish for base64 is not sent to models that know no other way', async () => {
    answer = official;
    const body = { model: 'gpt-image-1', prompt: 'a cat', moderation: 'low' } as const;
    await client().images.generate({ ...body, response_format: 'b64_json' });
    expect(jsonOf(upstream.requests[0] as SeenRequest)).toEqual(body);
    const { response } = await client()
      .images.generate({ ...body, response_format: 'url' })
      .withResponse();
    expect(response.headers.get('x-sluice-loss')).toBe('response_format');
  });

  test('a size becomes a ratio; what has no place is named', async () => {
    answer = contents;
    const { response } = await client()
      .images.generate({
        model: 'gemini-2.5-flash-image',
        prompt: 'a cat',
        size: '1536x1024',
        quality: 'high',
      })
      .withResponse();
    expect(jsonOf(upstream.requests[0] as SeenRequest).generationConfig).toEqual({
      responseModalities: ['TEXT', 'IMAGE'],
      imageConfig: { aspectRatio: '3:2' },
    });
    // The words beside the picture are lost on the way back.
    expect(response.headers.get('x-sluice-loss')).toBe('quality, text');
  });

  test('an image that cannot be fetched is the provider’s failure', async () => {
    answer = (_, response) =>
      sendJson(response, { created: 1, data: [{ url: `${upstream.url}/files/gone` }] });
    await expect(
      client().images.generate({ model: 'links', prompt: 'x', response_format: 'b64_json' }),
    ).rejects.toMatchObject({ status: 502, code: 'upstream_error' });
  });

  test('a refusal by policy is told as one', async () => {
    answer = (_, response) => sendJson(response, { candidates: [{ finishReason: 'IMAGE_SAFETY' }] });
    await expect(
      client().images.generate({ model: 'gemini-2.5-flash-image', prompt: 'x' }),
    ).rejects.toMatchObject({ status: 400, code: 'content_policy_violation' });
    answer = (_, response) =>
      sendJson(response, { error: { code: 'moderation_blocked', message: 'no', type: 'user_error' } }, 400);
    await expect(client().images.generate({ model: 'gpt-image-1', prompt: 'x' })).rejects.toMatchObject({
      status: 400,
      code: 'content_policy_violation',
    });
  });

  test('images are paid for by the piece, and by tokens where the provider tells them', async () => {
    const { value, record } = await gateway.apiKeys.create({ name: 'painter' });
    answer = older;
    await client(value).images.generate({ model: 'dall-e-2', prompt: 'a cat', n: 2 });
    answer = predicted;
    await client(value).images.generate({ model: 'imagen-4.0-generate-001', prompt: 'a cat', n: 5 });
    answer = official;
    await client(value).images.generate({ model: 'gpt-image-1', prompt: 'a cat' });
    const log = openUsageLog(gateway.stores);
    await eventually(async () => {
      const { records } = await log.page({ keyId: record.id }, 5);
      const paid = records.map(({ input, output, microDollars, units }) => ({
        input,
        output,
        microDollars,
        images: units?.images,
      }));
      expect(paid).toHaveLength(3);
      expect(paid).toEqual(
        expect.arrayContaining([
          { input: 0, output: 0, microDollars: 40_000, images: 2 },
          { input: 0, output: 0, microDollars: 200_000, images: 5 },
          // By the tokens that it tells, at the prices that ship: $5 for text, $10 for images, and $40 a million.
          { input: 50, output: 100, microDollars: 4_450, images: 1 },
        ]),
      );
    });
  });

  test('a budget is kept before the image is made', async () => {
    const { value } = await gateway.apiKeys.create({
      name: 'poor',
      budgets: [{ unit: 'micro-dollar', period: 'day', amount: 50_000 }],
    });
    answer = older;
    await expect(
      client(value).images.generate({ model: 'dall-e-2', prompt: 'x', n: 3 }),
    ).rejects.toMatchObject({ status: 429, code: 'insufficient_quota' });
    expect(upstream.requests).toHaveLength(0);
  });

  test.each<[string, JsonObject, string]>([
    ['dall-e-2', { prompt: 'x'.repeat(1001) }, 'prompt'],
    ['dall-e-3', { prompt: 'x'.repeat(4001) }, 'prompt'],
    ['dall-e-3', { n: 2 }, 'n'],
    ['dall-e-3', { size: '256x256' }, 'size'],
    ['dall-e-2', { quality: 'hd' }, 'quality'],
    ['dall-e-2', { style: 'vivid' }, 'style'],
    ['gpt-image-1', { n: 11 }, 'n'],
    ['gpt-image-1', { prompt: '' }, 'prompt'],
  ])('%s: what it does not take is named (%#)', async (model, more, param) => {
    await expect(client().images.generate({ model, prompt: 'x', ...more } as never)).rejects.toMatchObject({
      status: 400,
      param,
    });
    expect(upstream.requests).toHaveLength(0);
  });
});

describe('POST /v1/images/edits, by the official client', () => {
  test.each(rows('edit'))('%s', async (model, provider) => {
    ({ answer } = provider);
    const { data } = await client().images.edit({
      model,
      prompt: 'a hat',
      image: await pngFile(),
      response_format: 'b64_json',
    });
    expect(isPng(data?.[0]?.b64_json)).toBe(true);
    expectRequestTo(provider.urls.edit);
    if (model !== 'gemini-2.5-flash-image') return;
    expect(jsonOf(upstream.requests[0] as SeenRequest).contents).toEqual([
      { role: 'user', parts: [{ text: 'a hat' }, { inlineData: { mimeType: 'image/png', data: base64 } }] },
    ]);
  });

  test.each(rows('edit').filter(([model]) => model !== 'dall-e-2'))(
    '%s: several images',
    async (model, provider) => {
      ({ answer } = provider);
      const image = [await pngFile('a.png'), await pngFile('b.png', pngOf(8, 9))];
      const { data } = await client().images.edit({ model, prompt: 'a hat', image });
      expect(data).toHaveLength(1);
      if (model === 'demo') return;
      const [request] = upstream.requests as [SeenRequest];
      if (model === 'gemini-2.5-flash-image') {
        expect(request.body.toString().match(/"inlineData"/g)).toHaveLength(2);
        return;
      }
      const files = (await sent(request)).filter(([, value]) => value instanceof File) as [string, File][];
      expect(files.map(([name, { name: file, type }]) => [name, file, type])).toEqual([
        ['image[]', 'a.png', 'image/png'],
        ['image[]', 'b.png', 'image/png'],
      ]);
      expect(Buffer.from(await (files[1] as [string, File])[1].arrayBuffer())).toEqual(pngOf(8, 9));
    },
  );

  test.each(rows('edit'))('%s: as a stream', async (model, provider) => {
    ({ answer } = provider);
    const events: string[] = [];
    const stream = await client().images.edit({
      model,
      prompt: 'a hat',
      image: await pngFile(),
      stream: true,
      partial_images: 1,
    });
    for await (const one of stream) {
      events.push(one.type);
      expect(isPng(one.b64_json)).toBe(true);
    }
    const sketches = provider.streams ? ['image_edit.partial_image'] : [];
    expect(events).toEqual([...sketches, 'image_edit.completed']);
  });

  test.each(['demo', 'gpt-image-1', 'dall-e-2'])('%s: a mask', async (model) => {
    answer = model === 'dall-e-2' ? older : official;
    const image = await pngFile();
    const mask = await pngFile('mask.png');
    const { data } = await client().images.edit({ model, prompt: 'a hat', image, mask, n: 2 });
    expect(data).toHaveLength(2);
    if (model === 'demo') return;
    const got = await sent(upstream.requests[0] as SeenRequest);
    expect(got.map(([name, value]) => [name, value instanceof File ? value.name : value]).toSorted()).toEqual(
      [
        ['image', 'bild ä.png'],
        ['mask', 'mask.png'],
        ['model', model],
        ['n', '2'],
        ['prompt', 'a hat'],
      ],
    );
  });

  test('a mask that a provider has no place for is refused', async () => {
    const image = await pngFile();
    await expect(
      client().images.edit({ model: 'gemini-2.5-flash-image', prompt: 'x', image, mask: image }),
    ).rejects.toMatchObject({ status: 400, code: 'unsupported_content', param: 'mask' });
    await expect(
      client().images.edit({ model: 'imagen-4.0-generate-001', prompt: 'x', image }),
    ).rejects.toMatchObject({ status: 400, code: 'unsupported_content', param: 'image' });
    expect(upstream.requests).toHaveLength(0);
  });

  test('the same files go to the next channel when the first one fails', async () => {
    answer = (request, response) =>
      request.url.startsWith('/first/')
        ? sendJson(response, { error: { message: 'not today' } }, 500)
        : official(request, response);
    const { data } = await client().images.edit({ model: 'shared', prompt: 'x', image: await pngFile() });
    expect(data).toHaveLength(1);
    const [first, second] = await Promise.all(upstream.requests.map(sent));
    const bytes = async (parts: [string, string | File][] = []): Promise<unknown[]> =>
      Promise.all(
        parts.map(async ([name, value]) => [
          name,
          value instanceof File ? Buffer.from(await value.arrayBuffer()).toString('base64') : value,
        ]),
      );
    expect(await bytes(first)).toEqual(await bytes(second));
    expect(await bytes(second)).toContainEqual(['image', base64]);
  });
});

describe('an edit in JSON', () => {
  const post = async (body: JsonObject) => {
    const response = await fetch(`${gateway.url}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as JsonObject };
  };

  test('passes as it is', async () => {
    answer = official;
    const body = {
      model: 'gpt-image-1',
      prompt: 'x',
      images: [{ file_id: 'file-1' }],
      mask: { file_id: 'f' },
    };
    expect(await post(body)).toMatchObject({ status: 200, body: { data: [{ b64_json: base64 }] } });
    expect(jsonOf(upstream.requests[0] as SeenRequest)).toEqual(body);
  });

  test('is fetched for a provider that wants the bytes', async () => {
    answer = contents;
    const image = { image_url: `${upstream.url}/files/given.png` };
    const body = { model: 'gemini-2.5-flash-image', prompt: 'x', images: [image] };
    expect((await post(body)).status).toBe(200);
    const request = upstream.requests.find(({ method }) => method === 'POST') as SeenRequest;
    expect(request.body.toString()).toContain(base64);
    const gone = { image_url: `${upstream.url}/files/gone` };
    expect(await post({ ...body, images: [image, gone] })).toMatchObject({
      status: 400,
      body: { error: { param: 'images[1].image_url' } },
    });
  });
});

describe('where nothing may be fetched', () => {
  let closed: TestGateway;
  beforeAll(async () => {
    const at = (path: string) => ({ key: 'k', baseUrl: upstream.url + path });
    const traits = { links: { images: { delivers: 'url' } } } as const;
    closed = await startGateway({
      channels: [
        openaiChannel({ ...at('/v1'), models: ['links'], traits }),
        geminiChannel({ ...at('/v1beta'), models: ['gemini-2.5-flash-image'] }),
      ],
      fetch: { enabled: false, total: 4096 },
    });
  });
  afterAll(() => closed.close());
  const own = (): OpenAI => new OpenAI({ apiKey: closed.key, baseURL: `${closed.url}/v1`, maxRetries: 0 });

  test('the address is given in place of the bytes, and said to be a loss', async () => {
    answer = linked;
    const { data, response } = await own()
      .images.generate({ model: 'links', prompt: 'x', response_format: 'b64_json' })
      .withResponse();
    expect(data.data).toEqual([{ url: `${upstream.url}/files/1.png` }]);
    expect(response.headers.get('x-sluice-loss')).toBe('response_format');
    expect(jsonOf(upstream.requests[0] as SeenRequest)).toEqual({ model: 'links', prompt: 'x' });
  });

  test('files that are too large together for a request in JSON are refused', async () => {
    const image = await Promise.all(
      ['a', 'b'].map((name) => pngFile(name, Buffer.concat([png, Buffer.alloc(3000)]))),
    );
    await expect(
      own().images.edit({ model: 'gemini-2.5-flash-image', prompt: 'x', image }),
    ).rejects.toMatchObject({ status: 413, param: 'image' });
    expect(upstream.requests).toHaveLength(0);
  });
});

describe('POST /v1/images/variations, by the official client', () => {
  test.each(rows('vary'))('%s', async (model, provider) => {
    ({ answer } = provider);
    const { data } = await client().images.createVariation({
      model,
      image: await pngFile(),
      n: 1,
      response_format: 'b64_json',
    });
    expect(isPng(data?.[0]?.b64_json)).toBe(true);
    expectRequestTo(provider.urls.vary);
  });

  test('a model whose channel has none: 503 that is not tried again', async () => {
    const form = new FormData();
    form.append('model', 'gemini-2.5-flash-image');
    form.append('image', new Blob([new Uint8Array(png)], { type: 'image/png' }), 'a.png');
    const response = await fetch(`${gateway.url}/v1/images/variations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: form,
    });
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([503, 'false']);
    expect(await response.json()).toMatchObject({ error: { code: 'endpoint_not_supported' } });
  });
});

describe('a stream that breaks', () => {
  const framesOf = async (model: string): Promise<ReturnType<typeof parseSse>> => {
    const response = await fetch(`${gateway.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, prompt: 'x', stream: true, partial_images: 2 }),
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    return parseSse(Buffer.from(await response.arrayBuffer()));
  };
  const sketch = event('image_generation.partial_image', { partial_image_index: 0 });

  test.each<[string, (response: ServerResponse) => void]>([
    ['is cut', (response) => void setImmediate(() => response.destroy())],
    ['ends before its image', (response) => void response.end()],
    [
      'tells an error',
      (response) =>
        void response.end('event: error\ndata: {"type":"error","error":{"message":"no","code":"x"}}\n\n'),
    ],
  ])('when the provider’s %s: an error is its last event', async (_, breaks) => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: ${String(sketch.type)}\ndata: ${JSON.stringify(sketch)}\n\n`, () =>
        breaks(response),
      );
    };
    const frames = await framesOf('gpt-image-1');
    expect(frames.map(({ event: name }) => name)).toEqual(['image_generation.partial_image', 'error']);
    expect(
      checkLegal(
        frames.map(({ event: name = '', data }) => ({ event: name, json: JSON.parse(data) as JsonObject })),
      ),
    ).toEqual([]);
  });

  test('is raised by the official client', async () => {
    const seen: string[] = [];
    const run = async (): Promise<void> => {
      const prompt = 'a cat !cut-after=1';
      const stream = await client().images.generate({
        model: 'demo',
        prompt,
        stream: true,
        partial_images: 2,
      });
      for await (const one of stream) seen.push(one.type);
    };
    await expect(run()).rejects.toThrow(/before the response was complete/);
    expect(seen).toEqual(['image_generation.partial_image']);
  });
});

describe('uploads that are refused', () => {
  /** Files that uploads were written to: by name, and those that are open without one. */
  const leftovers = (): readonly string[] => {
    const named = uploadNames();
    if (!existsSync('/proc/self/fd')) return named;
    const open = readdirSync('/proc/self/fd').flatMap((name) => {
      try {
        const path = readlinkSync(`/proc/self/fd/${name}`);
        return path.includes('sluice-upload-') ? [path] : [];
      } catch {
        return [];
      }
    });
    return [...named, ...open];
  };
  const expectNothingLeft = (): Promise<void> => eventually(() => expect(leftovers()).toEqual([]));

  const noise = Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024, 7)]);
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(5000)]);

  test.each<[string, string, () => Promise<File>, number]>([
    ['not square', 'dall-e-2', () => pngFile('a.png', pngOf(64, 32)), 400],
    ['no PNG, whatever its name says', 'dall-e-2', () => pngFile('a.png', jpeg), 400],
    ['4 MB', 'dall-e-2', () => pngFile('a.png', noise), 400],
    ['no image, whatever its name says', 'gpt-image-1', () => pngFile('a.png', Buffer.from('hello')), 400],
    ['empty', 'gpt-image-1', () => pngFile('a.png', Buffer.alloc(0)), 400],
    [
      'larger than the gateway takes',
      'gpt-image-1',
      () => pngFile('a.png', Buffer.concat([noise, noise])),
      413,
    ],
  ])('%s', async (_, model, file, status) => {
    await expect(client().images.edit({ model, prompt: 'x', image: await file() })).rejects.toMatchObject({
      status,
      param: 'image',
    });
    expect(upstream.requests).toHaveLength(0);
    await expectNothingLeft();
  });

  const head = '--x\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\n';
  test.each<[string, string, Buffer, number]>([
    ['a text where a form must be', 'text/plain', Buffer.from('x'), 415],
    ['no boundary', 'multipart/form-data', Buffer.from('x'), 400],
    ['another boundary', 'multipart/form-data; boundary=y', Buffer.from(head), 400],
    ['cut in a file', 'multipart/form-data; boundary=x', Buffer.concat([Buffer.from(head), png]), 400],
    ['JSON that is none', 'application/json', Buffer.from('{"model":'), 400],
    ['JSON without images', 'application/json', Buffer.from('{"model":"gpt-image-1","prompt":"x"}'), 400],
  ])('%s', async (_, type, body, status) => {
    const response = await fetch(`${gateway.url}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': type },
      body: new Uint8Array(body),
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
    await expectNothingLeft();
  });

  test('a client that leaves in the middle of a file leaves nothing behind', async () => {
    const { port } = new URL(gateway.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST /v1/images/edits HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n` +
        `content-type: multipart/form-data; boundary=x\r\ncontent-length: 1000000\r\n\r\n${head}`,
    );
    socket.write(Buffer.concat([png, Buffer.alloc(100_000)]));
    // It is being read: the part beyond the memory's share is in a file.
    await eventually(() => expect(leftovers().length).toBeGreaterThan(0));
    socket.destroy();
    await expectNothingLeft();
    expect(upstream.requests).toHaveLength(0);
  });

  test('nothing is left of those that were taken, either', async () => {
    answer = official;
    const image = [await pngFile(), await pngFile('b.png', pngOf(600, 600))];
    const { data } = await client().images.edit({ model: 'gpt-image-1', prompt: 'x', image });
    expect(data).toHaveLength(1);
    await expectNothingLeft();
  });
});
