import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import blackForestLabs from '../../channels/black-forest-labs.ts';
import fal from '../../channels/fal/index.ts';
import replicate from '../../channels/replicate/index.ts';
import stability from '../../channels/stability.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import quota from '../../plugins/quota/index.ts';
import { startGateway } from '../support/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { Provider, refusal, sentForm, sentJson } from './_provider.ts';

/** As the providers' own keys look. */
const keys = {
  fal: '4f1c2a7b-9e83-4d6a-8b2c-3d4e5f607182:9a1b2c3d4e5f60718293a4b5c6d7e8f9',
  bfl: '7c0e2b1a-5d4f-4a3b-9c8d-1e2f3a4b5c6d',
  stability: 'sk-Kq3v9ZrT1mXw8YbN5cHd2LpGf7JsA4uE6oQiVtR0yW',
  replicate: 'r8_Kq3v9ZrT1mXw8YbN5cHd2LpGf7JsA4uE6oQi',
} as const;

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(300, 3)]);
const base64 = png.toString('base64');
const dataUrl = `data:image/png;base64,${base64}`;

/** Fields that the client's format does not know. */
const seeded = { seed: 7 };
const without = { negative_prompt: 'dogs' };

let provider: Provider;
let openai: OpenAI;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [quota()],
    channels: [
      fal({ key: keys.fal, baseUrl: url, models: ['fal-ai/*'] }),
      fal({
        id: 'at-once',
        key: keys.fal,
        baseUrl: url,
        models: { direct: 'fal-ai/flux/dev' },
        mode: 'sync',
      }),
      blackForestLabs({ key: keys.bfl, baseUrl: `${url}/v1` }),
      stability({ key: keys.stability, baseUrl: `${url}/v2beta/stable-image` }),
      replicate({ key: keys.replicate, baseUrl: `${url}/v1`, models: ['owner/*', 'black-forest-labs/*'] }),
      replicate({
        id: 'hasty',
        key: keys.replicate,
        baseUrl: `${url}/v1`,
        models: { hasty: 'owner/slow' },
        timeouts: { attempt: 800 },
      }),
    ],
    fetch: { allow: ['127.0.0.1'] },
    prices: { direct: { perImage: 0.5 } },
    routing: { attempts: 1 },
  }));
  openai = clientOf(provider.gateway.key);
});
afterAll(() => provider.close());

function clientOf(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 });
}

const picture = () => toFile(png, 'cat.png', { type: 'image/png' });
const address = (): string => `${provider.requests[0]?.headers.host ?? ''}`;
const file = { headers: { 'content-type': 'image/png' }, body: png };
/** Returns the URL of the provider's results. */
const made = (): string => `http://${address()}/files/1.png`;

describe('images by fal', () => {
  const queue =
    (result: () => unknown, running = 1): Provider['script'] =>
    ({ method, url }) => {
      if (url === '/files/1.png') return file;
      if (method === 'POST')
        return {
          body: { request_id: 'r-1', status: 'IN_QUEUE', status_url: 'https://queue.fal.run/elsewhere' },
        };
      if (url.endsWith('/status')) {
        const polls = provider.paths.filter((path) => path.endsWith('/status')).length;
        return polls > running
          ? { body: { status: 'COMPLETED' } }
          : { status: 202, body: { status: polls === 1 ? 'IN_QUEUE' : 'IN_PROGRESS', queue_position: 0 } };
      }
      return { body: result() };
    };

  test('are ordered, asked about, and fetched when they are there', async () => {
    provider.says(queue(() => ({ images: [{ url: made(), content_type: 'image/png' }], seed: 7 }), 2));
    const reply = await openai.images.generate({
      model: 'fal-ai/flux/dev',
      prompt: 'a cat',
      size: '1536x1024',
      ...seeded,
    });
    expect(reply.data).toEqual([{ url: made() }]);
    expect(provider.paths).toEqual([
      'POST /fal-ai/flux/dev',
      'GET /fal-ai/flux/requests/r-1/status',
      'GET /fal-ai/flux/requests/r-1/status',
      'GET /fal-ai/flux/requests/r-1/status',
      'GET /fal-ai/flux/requests/r-1',
    ]);
    expect(provider.requests.every(({ headers }) => headers.authorization === `Key ${keys.fal}`)).toBe(true);
    expect(sentJson(provider.requests[0]!)).toEqual({
      seed: 7,
      prompt: 'a cat',
      image_size: { width: 1536, height: 1024 },
    });
  });

  test('come as bytes where the client wants those', async () => {
    provider.says(queue(() => ({ images: [{ url: made() }] })));
    const reply = await openai.images.generate({
      model: 'fal-ai/nano-banana',
      prompt: 'a cat',
      size: '1792x1024',
      quality: 'high',
      response_format: 'b64_json',
    });
    expect(reply.data).toEqual([{ b64_json: base64 }]);
    expect(sentJson(provider.requests[0]!)).toEqual({ prompt: 'a cat', aspect_ratio: '16:9' });
    // The provider's key is for its own addresses.
    expect(provider.requests.at(-1)).toMatchObject({ url: '/files/1.png' });
    expect(provider.requests.at(-1)?.headers.authorization).toBeUndefined();
  });

  test('are charged as many as were made, also where they are ordered in two requests', async () => {
    provider.says(({ method, url, body }) => {
      if (method !== 'POST') return { status: 500 };
      const { num_images: count = 1 } = JSON.parse(body.toString()) as { num_images?: number };
      return { body: { images: Array.from({ length: count }, () => ({ url: `https://x.example${url}` })) } };
    });
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'six' });
    const reply = await clientOf(value).images.generate({ model: 'direct', prompt: 'a cat', n: 6 });
    expect(reply.data).toHaveLength(6);
    expect(provider.paths).toEqual(['POST /fal-ai/flux/dev', 'POST /fal-ai/flux/dev']);
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }] as const;
    const ledger = openLedger(provider.gateway.stores);
    await expect
      .poll(() => ledger.states(record.id, budgets))
      .toMatchObject([{ spent: 3_000_000, reserved: 0 }]);
  });

  test('are changed, with a mask, by bytes in the request', async () => {
    provider.says(queue(() => ({ image: { url: dataUrl } }), 0));
    const reply = await openai.images.edit({
      model: 'fal-ai/flux-2-pro/edit',
      prompt: 'a hat',
      image: [await picture(), await picture()],
      mask: await picture(),
    });
    expect(reply.data).toEqual([{ b64_json: base64 }]);
    expect(sentJson(provider.requests[0]!)).toEqual({
      prompt: 'a hat',
      image_urls: [dataUrl, dataUrl],
      mask_url: dataUrl,
    });
    expect(provider.paths[1]).toBe('GET /fal-ai/flux-2-pro/requests/r-1/status');
  });

  test.each([
    ['imagen4/preview', '1792x1024', { aspect_ratio: '16:9' }],
    ['flux-pro/kontext/text-to-image', '1536x1024', { aspect_ratio: '3:2' }],
    ['luma-photon', '1792x1024', { aspect_ratio: '16:9' }],
    ['vidu/q2/text-to-image', '1024x1792', { aspect_ratio: '9:16' }],
    ['ideogram/v3', '1536x1024', { image_size: { width: 1536, height: 1024 } }],
    ['gpt-image-1.5', '1536x1024', { image_size: '1536x1024' }],
  ])('of %s have a size in its words', async (model, size, expected) => {
    provider.says(queue(() => ({ images: [{ url: made() }] }), 0));
    await openai.images.generate({ model: `fal-ai/${model}`, prompt: 'a cat', size: size as '1024x1024' });
    expect(sentJson(provider.requests[0]!)).toEqual({ prompt: 'a cat', ...expected });
  });

  test.each([
    ['qwen-image-edit-2511', { image_urls: [dataUrl], mask_url: dataUrl }],
    ['gpt-image-1.5/edit', { image_urls: [dataUrl], mask_image_url: dataUrl }],
    ['ideogram/v2/edit', { image_url: dataUrl, mask_url: dataUrl }],
    ['flux-pro/v1/fill', { image_url: dataUrl, mask_url: dataUrl }],
  ])('are given to %s in its words', async (model, expected) => {
    provider.says(queue(() => ({ images: [{ url: made() }] }), 0));
    const [image, mask] = [await picture(), await picture()];
    await openai.images.edit({ model: `fal-ai/${model}`, prompt: 'a hat', image, mask });
    expect(sentJson(provider.requests[0]!)).toEqual({ prompt: 'a hat', ...expected });
  });

  test('of a model that keeps the sides of what it is given lose their size', async () => {
    provider.says(queue(() => ({ images: [{ url: made() }] }), 0));
    const body = {
      model: 'fal-ai/flux-kontext/dev',
      prompt: 'a hat',
      size: '1024x1024',
      image: await picture(),
    } as const;
    const { response } = await openai.images.edit(body).withResponse();
    expect(response.headers.get('x-sluice-loss')).toBe('size');
  });

  test('that its review has blackened are refused', async () => {
    provider.says(queue(() => ({ images: [{ url: made() }], has_nsfw_concepts: [true] })));
    const failure = await refusal(openai.images.generate({ model: 'fal-ai/flux/dev', prompt: 'x' }));
    expect(failure).toMatchObject({ status: 400, code: 'content_policy_violation' });
  });

  test.each([
    [422, { detail: [{ loc: ['body'], msg: 'Unfit.', type: 'content_policy_violation' }] }, 400],
    [401, { detail: `No user found for Key ID and Secret ${keys.fal}` }, 502],
    [403, { detail: 'User is locked. Reason: Exhausted balance.' }, 502],
    [429, { detail: 'Too many requests' }, 429],
    [500, { detail: 'Internal' }, 502],
  ])('that are refused with %i and %o are told as it concerns the client', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(openai.images.generate({ model: 'fal-ai/flux/dev', prompt: 'x' }));
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain('9a1b2c3d');
  });

  test('are not ordered where a name leads elsewhere', async () => {
    provider.says(() => ({ body: {} }));
    const failure = await refusal(openai.images.generate({ model: 'fal-ai/../billing', prompt: 'x' }));
    expect(failure.status).toBe(400);
    expect(provider.requests).toEqual([]);
  });

  test('have a mode that the config must know', async () => {
    const entry = fal({ key: 'k', mode: 'slow' as 'sync' });
    await expect(startGateway({ channels: [entry] })).rejects.toThrow(/fal.*mode/s);
  });
});

describe('images by Black Forest Labs', () => {
  const order =
    (last: () => unknown): Provider['script'] =>
    ({ method, url }, count) => {
      if (url === '/files/1.png') return file;
      if (method === 'POST')
        return { body: { id: 'task-1', polling_url: 'https://evil.example/v1/get_result?id=task-1' } };
      return { body: count < 3 ? { id: 'task-1', status: 'Pending', result: null } : last() };
    };

  test('are ordered and asked about, at addresses of its own alone', async () => {
    provider.says(order(() => ({ id: 'task-1', status: 'Ready', result: { sample: made() } })));
    const { data, response } = await openai.images
      .generate({
        model: 'flux-2-pro',
        prompt: 'a cat',
        size: '1024x768' as '1024x1024',
        output_format: 'webp',
        response_format: 'b64_json',
      })
      .withResponse();
    expect(data.data).toEqual([{ b64_json: base64 }]);
    expect(response.headers.get('x-sluice-loss')).toBe('output_format');
    expect(provider.paths).toEqual([
      'POST /v1/flux-2-pro',
      'GET /v1/get_result?id=task-1',
      'GET /v1/get_result?id=task-1',
      'GET /files/1.png',
    ]);
    expect(provider.requests[0]?.headers['x-key']).toBe(keys.bfl);
    expect(sentJson(provider.requests[0]!)).toEqual({ prompt: 'a cat', width: 1024, height: 768 });
  });

  test('are changed by bytes in the request', async () => {
    provider.says(order(() => ({ id: 'task-1', status: 'Ready', result: { sample: made() } })));
    await openai.images.edit({
      model: 'flux-kontext-pro',
      prompt: 'a hat',
      image: [await picture(), await picture()],
      size: '1024x1024',
      output_format: 'png',
    });
    expect(sentJson(provider.requests[0]!)).toEqual({
      prompt: 'a hat',
      aspect_ratio: '1:1',
      output_format: 'png',
      input_image: base64,
      input_image_2: base64,
    });
  });

  test.each([
    ['Request Moderated', 400, 'content_policy_violation'],
    ['Content Moderated', 400, 'content_policy_violation'],
    ['Error', 502, 'upstream_error'],
    ['Task not found', 502, 'upstream_error'],
  ])('that end with "%s" are told as it concerns the client', async (status, expectedStatus, code) => {
    provider.says(order(() => ({ id: 'task-1', status, result: null })));
    const failure = await refusal(openai.images.generate({ model: 'flux-2-pro', prompt: 'x' }));
    expect(failure).toMatchObject({ status: expectedStatus, code });
  });

  test.each([
    [402, { detail: 'Insufficient credits.' }, 503],
    [403, { detail: `Not authenticated ${keys.bfl}` }, 502],
    [422, { detail: [{ loc: ['body', 'width'], msg: 'too large', type: 'less_than_equal' }] }, 400],
    [429, { detail: 'Too many active tasks' }, 429],
  ])('that are refused with %i and %o are told as it concerns the client', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(openai.images.generate({ model: 'flux-2-pro', prompt: 'x' }));
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain(keys.bfl);
  });
});

describe('images by Stability AI', () => {
  const done = { image: base64, finish_reason: 'SUCCESS', seed: 1 };

  test('are forms that name the model, and bytes', async () => {
    provider.says(() => ({ body: done }));
    const { data, response } = await openai.images
      .generate({
        model: 'sd3.5-large',
        prompt: 'a cat',
        size: '1792x1024',
        n: 2,
        response_format: 'url',
        ...without,
      })
      .withResponse();
    expect(data.data).toEqual([{ b64_json: base64 }, { b64_json: base64 }]);
    expect(response.headers.get('x-sluice-loss')).toBe('response_format');
    expect(provider.paths).toEqual([
      'POST /v2beta/stable-image/generate/sd3',
      'POST /v2beta/stable-image/generate/sd3',
    ]);
    expect(provider.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${keys.stability}`,
      accept: 'application/json',
    });
    expect(await sentForm(provider.requests[0]!)).toEqual({
      fields: { model: 'sd3.5-large', prompt: 'a cat', negative_prompt: 'dogs', aspect_ratio: '16:9' },
      files: {},
    });
  });

  test('are changed where the service of that name is', async () => {
    provider.says(() => ({ body: done }));
    await openai.images.edit({
      model: 'inpaint',
      prompt: 'a hat',
      image: await picture(),
      mask: await picture(),
      output_format: 'jpeg',
    });
    expect(provider.paths).toEqual(['POST /v2beta/stable-image/edit/inpaint']);
    const { fields, files } = await sentForm(provider.requests[0]!);
    expect(fields).toEqual({ prompt: 'a hat', output_format: 'jpeg' });
    expect(files).toMatchObject({ image: { type: 'image/png', bytes: png }, mask: { bytes: png } });
  });

  test('of a service that changes images are not made from words alone', async () => {
    provider.says(() => ({ body: done }));
    const failure = await refusal(openai.images.generate({ model: 'inpaint', prompt: 'a hat' }));
    expect(failure).toMatchObject({ status: 400, message: expect.stringContaining('/v1/images/edits') });
    expect(provider.requests).toEqual([]);
  });

  test('come in a stream as one event each', async () => {
    provider.says(() => ({ body: done }));
    const stream = await openai.images.generate({
      model: 'stable-image-core',
      prompt: 'a cat',
      stream: true,
    });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual(['image_generation.completed']);
    expect(provider.requests[0]?.headers.accept).toBe('application/json');
  });

  test.each([
    [200, { image: base64, finish_reason: 'CONTENT_FILTERED' }, 400, 'content_policy_violation'],
    [403, { id: '1', name: 'content_moderation', errors: ['Flagged.'] }, 400, 'content_policy_violation'],
    [402, { id: '1', name: 'payment_required', errors: ['You lack credits.'] }, 503, 'no_available_channel'],
    [401, { id: '1', name: 'unauthorized', errors: [`Bad key ${keys.stability}`] }, 502, 'upstream_error'],
    [400, { id: '1', name: 'bad_request', errors: ['prompt: is too long'] }, 400, 'invalid_request'],
    [413, { id: '1', name: 'payload_too_large', errors: ['Too large.'] }, 413, 'request_too_large'],
  ])(
    'that are refused with %i and %o are told as it concerns the client',
    async (status, body, expectedStatus, code) => {
      provider.says(() => ({ status, body }));
      const failure = await refusal(openai.images.generate({ model: 'stable-image-core', prompt: 'x' }));
      expect(failure).toMatchObject({ status: expectedStatus, code });
      expect(failure.message).not.toContain(keys.stability);
    },
  );
});

describe('images by Replicate', () => {
  test('are there at once, when they are made within its own patience', async () => {
    provider.says(() => ({
      status: 201,
      body: { id: 'p1', status: 'succeeded', output: ['https://r.example/1.png'] },
    }));
    const reply = await openai.images.generate({
      model: 'black-forest-labs/flux-schnell',
      prompt: 'a cat',
      size: '1024x1536',
      output_format: 'jpeg',
    });
    expect(reply.data).toEqual([{ url: 'https://r.example/1.png' }]);
    expect(provider.paths).toEqual(['POST /v1/models/black-forest-labs/flux-schnell/predictions']);
    expect(provider.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${keys.replicate}`,
      prefer: 'wait',
    });
    expect(sentJson(provider.requests[0]!)).toEqual({
      input: { prompt: 'a cat', aspect_ratio: '2:3', output_format: 'jpg' },
    });
  });

  test('by a version of a model are asked about until they are there', async () => {
    provider.says((_request, count) => ({
      status: count === 1 ? 202 : 200,
      body:
        count < 3
          ? { id: 'p1', status: count === 1 ? 'starting' : 'processing', output: null }
          : { id: 'p1', status: 'succeeded', output: 'https://r.example/1.png' },
    }));
    const reply = await openai.images.generate({
      model: 'owner/sdxl:39ed52f2a78e',
      prompt: 'a cat',
      size: '1024x1024',
    });
    expect(reply.data).toEqual([{ url: 'https://r.example/1.png' }]);
    expect(provider.paths).toEqual([
      'POST /v1/predictions',
      'GET /v1/predictions/p1',
      'GET /v1/predictions/p1',
    ]);
    expect(sentJson(provider.requests[0]!)).toEqual({
      version: '39ed52f2a78e',
      input: { prompt: 'a cat', width: 1024, height: 1024 },
    });
  });

  test.each([
    ['owner/painter', 1, { image: dataUrl }],
    ['black-forest-labs/flux-2-pro', 2, { input_image: dataUrl, input_image_2: dataUrl }],
    ['owner/seedream-4', 2, { image_input: [dataUrl, dataUrl] }],
  ])('are changed by %s in its own fields', async (model, count, input) => {
    provider.says(() => ({ body: { id: 'p1', status: 'succeeded', output: [dataUrl] } }));
    const image = await Promise.all(Array.from({ length: count }, picture));
    const reply = await openai.images.edit({ model, prompt: 'a hat', image });
    expect(reply.data).toEqual([{ b64_json: base64 }]);
    expect(sentJson(provider.requests[0]!)).toEqual({ input: { prompt: 'a hat', ...input } });
  });

  test.each([
    ['owner/painter', 2, false, 'image'],
    ['black-forest-labs/flux-2-pro', 1, true, 'mask'],
    ['flux-kontext-pro', 1, true, 'mask'],
    ['fal-ai/flux/dev/image-to-image', 2, false, 'image'],
  ])('are not changed by %s with what it would not look at', async (model, count, masked, param) => {
    provider.says(() => ({ body: {} }));
    const image = await Promise.all(Array.from({ length: count }, picture));
    const mask = masked ? { mask: await picture() } : {};
    const failure = await refusal(openai.images.edit({ model, prompt: 'a hat', image, ...mask }));
    expect(failure).toMatchObject({ status: 400, param });
    expect(provider.requests).toEqual([]);
  });

  test.each([
    [201, { id: 'p', status: 'failed', error: 'NSFW content detected. Try another prompt.' }, 400],
    [201, { id: 'p', status: 'failed', error: 'CUDA out of memory' }, 502],
    [201, { id: 'p', status: 'canceled' }, 502],
    [402, { title: 'Insufficient credit', detail: 'You have insufficient credit.', status: 402 }, 503],
    [401, { title: 'Unauthenticated', detail: `Bad token ${keys.replicate}`, status: 401 }, 502],
    [422, { title: 'Input validation failed', detail: '- input.width: too large', status: 422 }, 400],
    [429, { detail: 'Request was throttled.', status: 429, retry_after: 3 }, 429],
  ])('that end with %i and %o are told as it concerns the client', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(openai.images.generate({ model: 'owner/painter', prompt: 'x' }));
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain(keys.replicate);
  });

  test('are waited for no longer than an attempt may take, and not when the client has left', async () => {
    provider.says(() => ({ body: { id: 'p1', status: 'processing' } }));
    expect((await refusal(openai.images.generate({ model: 'hasty', prompt: 'x' }))).status).toBe(504);
    provider.requests.length = 0;
    const leaving = new AbortController();
    const call = openai.images.generate({ model: 'owner/painter', prompt: 'x' }, { signal: leaving.signal });
    const left = refusal(call);
    await eventually(() => expect(provider.requests.length).toBeGreaterThan(2));
    leaving.abort();
    await left;
    await eventually(() => expect(provider.gateway.lines.some(({ status }) => status === 499)).toBe(true));
    const requestsBefore = provider.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(provider.requests).toHaveLength(requestsBefore);
  });
});
