import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fal from '../../channels/fal/index.ts';
import luma from '../../channels/luma.ts';
import minimax from '../../channels/minimax/index.ts';
import replicate from '../../channels/replicate/index.ts';
import runway from '../../channels/runway.ts';
import vertex from '../../channels/vertex/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import quota from '../../plugins/quota/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import type { SeenRequest } from '../support/upstream.ts';
import { Provider, refusal, sentJson, type ProviderResponse } from './_provider.ts';

const key = 'key_0a1b2c3d4e5f60718293a4b5c6d7e8f9';
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(300, 3)]);
const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
const film = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(3_000, 9)]);
const picture = () => toFile(png, 'cat.png', { type: 'image/png' });

let provider: Provider;
let openai: OpenAI;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [
      quota(),
      videoTasks({ poll: { first: 30, most: 50 }, fresh: 0, publicUrl: 'https://gate.example' }),
    ],
    channels: [
      runway({ key, baseUrl: `${url}/runway/v1` }),
      luma({ key, baseUrl: `${url}/luma/v1` }),
      fal({ key, baseUrl: `${url}/fal`, mode: 'sync' }),
      replicate({ key, baseUrl: `${url}/replicate/v1`, models: ['kwaivgi/*'] }),
      minimax({ key, baseUrl: `${url}/minimax/v1` }),
      vertex({ key: 'express', baseUrl: `${url}/v1/projects/p/locations/l`, models: ['veo-*'] }),
    ],
    fetch: { allow: ['127.0.0.1'] },
    prices: { gen4_turbo: { perSecond: 0.1 } },
    routing: { attempts: 1 },
  }));
  openai = clientOf(provider.gateway.key);
});
afterAll(() => provider.close());

function clientOf(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 });
}

/** Returns the URL of a video at the provider. */
const kept = (): string => `http://${provider.requests[0]?.headers.host ?? ''}/films/1.mp4`;

/** The request that made a task. Others are questions about those of tests before. */
function ordered(): SeenRequest {
  const order = provider.requests.find(({ method }) => method === 'POST');
  if (order === undefined) throw new Error('Nothing was ordered.');
  return order;
}

/** Says what belongs to the first of these that a request's method and address begin with. */
function script(answers: Readonly<Record<string, (count: number) => ProviderResponse>>): Provider['script'] {
  const counts = new Map<string, number>();
  return ({ method, url }) => {
    if (url === '/films/1.mp4') return { headers: { 'content-type': 'video/mp4' }, body: film };
    const found = Object.keys(answers).find((start) => `${method} ${url}`.startsWith(start));
    if (found === undefined) return { status: 404, body: {} };
    const count = (counts.get(found) ?? 0) + 1;
    counts.set(found, count);
    return answers[found]?.(count);
  };
}

/** Asks for a task until it has come to its end. */
async function ended(id: string): Promise<OpenAI.Video> {
  let video = await openai.videos.retrieve(id);
  await expect
    .poll(async () => {
      video = await openai.videos.retrieve(id);
      return video.status;
    })
    .toMatch(/completed|failed/);
  return video;
}

async function bytesOf(id: string): Promise<Buffer> {
  return Buffer.from(await (await openai.videos.downloadContent(id)).arrayBuffer());
}

describe('Runway', () => {
  test('makes a video of words, tells how far it is, and gives it', async () => {
    provider.says(
      script({
        'POST /runway/v1/text_to_video': () => ({ body: { id: 'task-1' } }),
        'GET /runway/v1/tasks/task-1': (poll) => ({
          body:
            poll < 3
              ? { id: 'task-1', status: 'RUNNING', progress: 0.5 }
              : { id: 'task-1', status: 'SUCCEEDED', output: [kept()] },
        }),
      }),
    );
    const made = await openai.videos.create({
      model: 'gen4.5',
      prompt: 'the moon',
      seconds: '8',
      size: '720x1280',
    });
    expect(made).toMatchObject({ object: 'video', status: 'queued', model: 'gen4.5' });
    expect(sentJson(ordered())).toEqual({
      model: 'gen4.5',
      promptText: 'the moon',
      ratio: '720:1280',
      duration: 8,
    });
    expect(ordered().headers).toMatchObject({
      authorization: `Bearer ${key}`,
      'x-runway-version': '2024-11-06',
    });
    expect(await ended(made.id)).toMatchObject({ status: 'completed', progress: 100 });
    expect((await bytesOf(made.id)).equals(film)).toBe(true);
    const download = provider.requests.find(({ url }) => url === '/films/1.mp4');
    expect(download?.headers.authorization).toBeUndefined();
  });

  test('makes one that begins with an image', async () => {
    provider.says(script({ 'POST /runway/v1/image_to_video': () => ({ body: { id: 'task-2' } }) }));
    await openai.videos.create({ model: 'gen4_turbo', prompt: 'it moves', input_reference: await picture() });
    expect(sentJson(ordered())).toEqual({
      model: 'gen4_turbo',
      promptText: 'it moves',
      promptImage: dataUrl,
      ratio: '1280:720',
      duration: 5,
    });
  });

  test.each<[string, object, object, string | null]>([
    [
      'veo3.1',
      { seconds: '5', size: '1920x1080', seed: 7, negative_prompt: 'sun' },
      { ratio: '1920:1080', duration: 6, seed: 7, negativePrompt: 'sun' },
      'seconds',
    ],
    [
      'hailuo3',
      { aspect_ratio: '9:16', resolution: '768p' },
      { ratio: '9:16', resolution: '768p', duration: 5 },
      null,
    ],
    ['hailuo3', { size: '1280x720', seed: 7 }, { ratio: '16:9', duration: 5 }, 'seed, size'],
    [
      'grok_imagine_1_5',
      { size: '1280x720', seconds: '8' },
      { ratio: '16:9', resolution: '720p', duration: 8 },
      null,
    ],
    ['seedance2', {}, { duration: 5 }, null],
    ['veo3.1_fast', {}, { ratio: '1280:720', duration: 4 }, null],
    [
      'h3_max',
      { resolution: '480p', aspect_ratio: '1:1' },
      { resolution: '480p', duration: 5 },
      'aspect_ratio',
    ],
  ])('tells %s, asked for %o, what it takes', async (model, parameters, expected, lost) => {
    provider.says(script({ 'POST /runway/v1/text_to_video': () => ({ body: { id: 'task-9' } }) }));
    const response = await fetch(`${provider.gateway.url}/v1/videos`, {
      method: 'POST',
      headers: { authorization: `Bearer ${provider.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, prompt: 'the moon', ...parameters }),
    });
    expect(response.status).toBe(200);
    expect(sentJson(ordered())).toEqual({ model, promptText: 'the moon', ...expected });
    expect(response.headers.get('x-sluice-loss')).toBe(lost);
  });

  test('that fails says why, and is not paid', async () => {
    provider.says(
      script({
        'POST /runway/v1/text_to_video': () => ({ body: { id: 'task-3' } }),
        'GET /runway/v1/tasks/task-3': () => ({
          body: {
            id: 'task-3',
            status: 'FAILED',
            failure: 'It was too bold.',
            failureCode: 'SAFETY.INPUT.TEXT',
          },
        }),
      }),
    );
    const { value, record } = await provider.gateway.apiKeys.create({ name: 'payer' });
    openai = clientOf(value);
    const made = await openai.videos.create({ model: 'gen4_turbo', prompt: 'x', seconds: '8' });
    expect(await ended(made.id)).toMatchObject({
      status: 'failed',
      error: { code: 'SAFETY.INPUT.TEXT', message: 'It was too bold.' },
    });
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }] as const;
    await expect
      .poll(() => openLedger(provider.gateway.stores).states(record.id, budgets))
      .toMatchObject([{ spent: 0, reserved: 0 }]);
    openai = clientOf(provider.gateway.key);
  });

  test('is told to stop', async () => {
    provider.says(
      script({
        'POST /runway/v1/text_to_video': () => ({ body: { id: 'task-4' } }),
        'GET /runway/v1/tasks/task-4': () => ({ body: { id: 'task-4', status: 'PENDING' } }),
        'DELETE /runway/v1/tasks/task-4': () => ({ status: 204 }),
      }),
    );
    const made = await openai.videos.create({ model: 'gen4.5', prompt: 'x' });
    await openai.videos.delete(made.id);
    expect(provider.paths).toContain('DELETE /runway/v1/tasks/task-4');
  });

  test.each([
    [400, { error: 'Validation of body failed', issues: [] }, 400],
    [401, { error: `Key ${key} is wrong` }, 502],
    [429, { error: 'Too many tasks' }, 429],
    [200, {}, 502],
  ])('that answers %i and %o is told as it concerns the client', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(openai.videos.create({ model: 'gen4.5', prompt: 'x' }));
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain(key);
  });
});

describe('Luma', () => {
  test('makes a video between two images, in the nearest length', async () => {
    provider.says(
      script({
        'POST /luma/v1/generations/video': () => ({ status: 201, body: { id: 'g1', state: 'queued' } }),
        'GET /luma/v1/generations/g1': (poll) => ({
          body:
            poll < 2
              ? { id: 'g1', state: 'dreaming' }
              : {
                  id: 'g1',
                  state: 'completed',
                  assets: { video: kept(), image: 'https://cdn.example/1.jpg' },
                },
        }),
      }),
    );
    const response = await fetch(`${provider.gateway.url}/v1/video/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${provider.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'ray-2',
        prompt: 'from here to there',
        images: ['https://x.example/a.png', 'https://x.example/b.png'],
        duration: 7,
        size: '1920x1080',
      }),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-sluice-loss')).toBe('duration');
    expect(sentJson(ordered())).toEqual({
      model: 'ray-2',
      prompt: 'from here to there',
      aspect_ratio: '16:9',
      resolution: '1080p',
      duration: '9s',
      keyframes: {
        frame0: { type: 'image', url: 'https://x.example/a.png' },
        frame1: { type: 'image', url: 'https://x.example/b.png' },
      },
    });
    const { task_id: id = '' } = (await response.json()) as { task_id?: string };
    expect(await ended(id)).toMatchObject({ status: 'completed' });
    expect((await bytesOf(id)).equals(film)).toBe(true);
  });

  test.each([
    ['3840x2160', { aspect_ratio: '16:9', resolution: '4k' }, null],
    ['854x480', { aspect_ratio: '16:9', resolution: '540p' }, 'size'],
  ])('makes %s in the resolution next to it', async (size, expected, lost) => {
    provider.says(
      script({ 'POST /luma/v1/generations/video': () => ({ body: { id: 'g3', state: 'queued' } }) }),
    );
    const { response } = await openai.videos
      .create({ model: 'ray-flash-2', prompt: 'x', size: size as '1280x720' })
      .withResponse();
    expect(sentJson(ordered())).toMatchObject(expected);
    expect(response.headers.get('x-sluice-loss')).toBe(lost);
  });

  test('takes no image as bytes', async () => {
    provider.says(() => ({ body: {} }));
    const call = openai.videos.create({ model: 'ray-2', prompt: 'x', input_reference: await picture() });
    expect(await refusal(call)).toMatchObject({ status: 400 });
    expect(provider.paths.filter((path) => path.startsWith('POST'))).toEqual([]);
  });

  test('that fails says why', async () => {
    provider.says(
      script({
        'POST /luma/v1/generations/video': () => ({ body: { id: 'g2', state: 'queued' } }),
        'GET /luma/v1/generations/g2': () => ({
          body: { id: 'g2', state: 'failed', failure_reason: 'No moon.' },
        }),
      }),
    );
    const made = await openai.videos.create({ model: 'ray-2', prompt: 'x' });
    expect(await ended(made.id)).toMatchObject({ status: 'failed', error: { message: 'No moon.' } });
  });
});

describe('MiniMax', () => {
  const fine = { status_code: 0, status_msg: 'success' };

  test('makes a video, whose file is asked for when it is there', async () => {
    provider.says(
      script({
        'POST /minimax/v1/video_generation': () => ({ body: { task_id: '123', base_resp: fine } }),
        'GET /minimax/v1/query/video_generation?task_id=123': (poll) => ({
          body:
            poll < 2
              ? { task_id: '123', status: 'Queueing', base_resp: fine }
              : { task_id: '123', status: 'Success', file_id: '77', base_resp: fine },
        }),
        'GET /minimax/v1/files/retrieve?file_id=77': () => ({
          body: { file: { file_id: 77, download_url: kept() }, base_resp: fine },
        }),
      }),
    );
    const { data, response } = await openai.videos
      .create({
        model: 'MiniMax-Hailuo-02',
        prompt: 'the moon',
        seconds: '8',
        size: '1280x720',
        input_reference: await picture(),
      })
      .withResponse();
    expect(response.headers.get('x-sluice-loss')).toBe('seconds');
    expect(sentJson(ordered())).toEqual({
      model: 'MiniMax-Hailuo-02',
      prompt: 'the moon',
      duration: 10,
      resolution: '768P',
      first_frame_image: dataUrl,
    });
    expect(await ended(data.id)).toMatchObject({ status: 'completed' });
    expect((await bytesOf(data.id)).equals(film)).toBe(true);
  });

  test('makes one by its newer models in their words', async () => {
    provider.says(
      script({
        'POST /minimax/v2/video_generation': () => ({ body: { task_id: 't9' } }),
        'GET /minimax/v2/query/video_generation/t9': () => ({
          body: { task: { id: 't9', status: 'succeeded', duration: 5, content: { url: kept() } } },
        }),
      }),
    );
    const made = await openai.videos.create({ model: 'MiniMax-H3', prompt: 'the moon', size: '720x1280' });
    expect(sentJson(ordered())).toEqual({
      model: 'MiniMax-H3',
      content: [{ type: 'text', text: 'the moon' }],
      resolution: '768P',
      duration: 5,
      ratio: '9:16',
    });
    expect(await ended(made.id)).toMatchObject({ status: 'completed', seconds: '5' });
    expect((await bytesOf(made.id)).equals(film)).toBe(true);
  });

  test.each([
    ['2560x1440', { resolution: '2K', ratio: '16:9' }, null],
    ['1920x1080', { resolution: '768P', ratio: '16:9' }, 'size'],
  ])('makes %s by those in one of their two resolutions', async (size, expected, lost) => {
    provider.says(script({ 'POST /minimax/v2/video_generation': () => ({ body: { task_id: 't8' } }) }));
    const { response } = await openai.videos
      .create({ model: 'MiniMax-H3', prompt: 'x', size: size as '1280x720' })
      .withResponse();
    expect(sentJson(ordered())).toMatchObject(expected);
    expect(response.headers.get('x-sluice-loss')).toBe(lost);
  });

  test.each([
    [1026, 400],
    [1008, 503],
    [1002, 429],
    [1004, 502],
    [1028, 503],
    [1042, 400],
    [2013, 400],
    [2045, 429],
    [2056, 429],
    [2061, 502],
  ])(
    'that refuses with its code %i, under status 200, is told as it concerns the client',
    async (code, expected) => {
      provider.says(() => ({
        body: { task_id: '', base_resp: { status_code: code, status_msg: 'Refused.' } },
      }));
      const failure = await refusal(openai.videos.create({ model: 'MiniMax-Hailuo-02', prompt: 'x' }));
      expect(failure.status).toBe(expected);
    },
  );
});

describe('Veo on Vertex AI', () => {
  const operation = 'projects/p/locations/l/publishers/google/models/veo-3.1-generate-001/operations/o-1';
  const home = '/v1/projects/p/locations/l/publishers/google/models/veo-3.1-generate-001';

  test('makes a video as an operation, and gives the bytes that stand in it', async () => {
    provider.says(
      script({
        [`POST ${home}:predictLongRunning`]: () => ({ body: { name: operation } }),
        [`POST ${home}:fetchPredictOperation`]: (poll) => ({
          body:
            poll < 2
              ? { name: operation }
              : {
                  name: operation,
                  done: true,
                  response: {
                    videos: [{ bytesBase64Encoded: film.toString('base64'), mimeType: 'video/mp4' }],
                  },
                },
        }),
      }),
    );
    const made = await openai.videos.create({
      model: 'veo-3.1-generate-001',
      prompt: 'the moon',
      seconds: '8',
      size: '1280x720',
      input_reference: await picture(),
    });
    expect(sentJson(ordered())).toEqual({
      instances: [
        { prompt: 'the moon', image: { bytesBase64Encoded: png.toString('base64'), mimeType: 'image/png' } },
      ],
      parameters: { aspectRatio: '16:9', resolution: '720p', durationSeconds: 8 },
    });
    expect(await ended(made.id)).toMatchObject({ status: 'completed' });
    const question = provider.requests.find(({ url }) => url.endsWith(':fetchPredictOperation'));
    expect(question === undefined ? {} : sentJson(question)).toEqual({ operationName: operation });
    expect((await bytesOf(made.id)).equals(film)).toBe(true);
  });

  test('that was filtered says why', async () => {
    provider.says(
      script({
        [`POST ${home}:predictLongRunning`]: () => ({ body: { name: operation } }),
        [`POST ${home}:fetchPredictOperation`]: () => ({
          body: {
            name: operation,
            done: true,
            response: { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['It was too bold.'] },
          },
        }),
      }),
    );
    const made = await openai.videos.create({ model: 'veo-3.1-generate-001', prompt: 'x' });
    expect(await ended(made.id)).toMatchObject({
      status: 'failed',
      error: { code: 'content_policy_violation', message: 'It was too bold.' },
    });
  });
});

describe('fal', () => {
  const path = '/fal/fal-ai/veo3/requests/r-1';

  test.each([
    ['sora-2/image-to-video', 'image_url', '8'],
    ['veo3.1/first-last-frame-to-video', 'first_frame_url', '8s'],
    ['luma-dream-machine/ray-2/image-to-video', 'image_url', '8s'],
    ['kling-video/v2.6/pro/image-to-video', 'start_image_url', '8'],
    ['kling-video/o3/pro/image-to-video', 'image_url', '8'],
    ['pixverse/v5/transition', 'first_image_url', '8'],
    ['pixverse/v6/image-to-video', 'image_url', 8],
    ['vidu/q3/image-to-video', 'image_url', 8],
    ['vidu/q1/start-end-to-video', 'start_image_url', '8'],
  ])('is told in the words of %s', async (model, image, duration) => {
    provider.says(() => ({ body: { request_id: 'r-1', status: 'IN_QUEUE' } }));
    await openai.videos.create({
      model: `fal-ai/${model}`,
      prompt: 'the moon',
      seconds: '8',
      input_reference: await picture(),
    });
    expect(sentJson(ordered())).toEqual({ prompt: 'the moon', [image]: dataUrl, duration });
  });

  test('makes a video in its queue, and gives its result', async () => {
    provider.says(
      script({
        'POST /fal/fal-ai/veo3/fast': () => ({ body: { request_id: 'r-1', status: 'IN_QUEUE' } }),
        [`GET ${path}/status`]: (poll) => ({
          body: { request_id: 'r-1', status: poll < 2 ? 'IN_PROGRESS' : 'COMPLETED' },
        }),
        [`GET ${path}`]: () => ({ body: { video: { url: kept() } } }),
      }),
    );
    const made = await openai.videos.create({
      model: 'fal-ai/veo3/fast',
      prompt: 'the moon',
      seconds: '8',
      size: '1280x720',
      input_reference: await picture(),
    });
    expect(sentJson(ordered())).toEqual({
      prompt: 'the moon',
      image_url: dataUrl,
      aspect_ratio: '16:9',
      resolution: '720p',
      duration: '8s',
    });
    expect(await ended(made.id)).toMatchObject({ status: 'completed' });
    expect((await bytesOf(made.id)).equals(film)).toBe(true);
  });

  test('is told to stop', async () => {
    provider.says(
      script({
        'POST /fal/fal-ai/veo3/fast': () => ({ body: { request_id: 'r-1', status: 'IN_QUEUE' } }),
        [`PUT ${path}/cancel`]: () => ({ status: 202, body: { status: 'CANCELLATION_REQUESTED' } }),
        [`GET ${path}/status`]: () => ({ body: { request_id: 'r-1', status: 'IN_QUEUE' } }),
      }),
    );
    const made = await openai.videos.create({ model: 'fal-ai/veo3/fast', prompt: 'x' });
    await openai.videos.delete(made.id);
    expect(provider.paths).toContain(`PUT ${path}/cancel`);
  });

  test.each([
    [
      422,
      { detail: [{ loc: ['body'], msg: 'Unfit.', type: 'content_policy_violation' }] },
      'content_policy_violation',
    ],
    [500, { detail: 'It broke.' }, 'generation_failed'],
  ])('whose result is %i tells that there is no video', async (status, body, code) => {
    provider.says(
      script({
        'POST /fal/fal-ai/veo3/fast': () => ({ body: { request_id: 'r-1', status: 'IN_QUEUE' } }),
        [`GET ${path}/status`]: () => ({ body: { request_id: 'r-1', status: 'COMPLETED' } }),
        [`GET ${path}`]: () => ({ status, body }),
      }),
    );
    const made = await openai.videos.create({ model: 'fal-ai/veo3/fast', prompt: 'x' });
    expect(await ended(made.id)).toMatchObject({ status: 'failed', error: { code } });
  });
});

describe('Replicate', () => {
  const model = 'kwaivgi/kling-v2.1';
  const home = '/replicate/v1/models/kwaivgi/kling-v2.1/predictions';

  test('makes a video of an image, in the words of its model', async () => {
    provider.says(
      script({
        [`POST ${home}`]: () => ({ status: 201, body: { id: 'p1', status: 'starting' } }),
        'GET /replicate/v1/predictions/p1': (poll) => ({
          body:
            poll < 2 ? { id: 'p1', status: 'processing' } : { id: 'p1', status: 'succeeded', output: kept() },
        }),
      }),
    );
    const made = await openai.videos.create({
      model,
      prompt: 'it moves',
      seconds: '8',
      input_reference: await picture(),
    });
    expect(ordered().headers.prefer).toBeUndefined();
    expect(sentJson(ordered())).toEqual({
      input: { prompt: 'it moves', start_image: dataUrl, duration: 8 },
    });
    expect(await ended(made.id)).toMatchObject({ status: 'completed' });
    expect((await bytesOf(made.id)).equals(film)).toBe(true);
  });

  test('that fails says why, and is told to stop what runs', async () => {
    provider.says(
      script({
        [`POST ${home}`]: () => ({ status: 201, body: { id: 'p2', status: 'starting' } }),
        'GET /replicate/v1/predictions/p2': () => ({
          body: { id: 'p2', status: 'failed', error: 'No moon.' },
        }),
        'POST /replicate/v1/predictions/p3/cancel': () => ({ body: { id: 'p3', status: 'canceled' } }),
      }),
    );
    const made = await openai.videos.create({ model, prompt: 'x' });
    expect(await ended(made.id)).toMatchObject({ status: 'failed', error: { message: 'No moon.' } });
    provider.says(
      script({
        [`POST ${home}`]: () => ({ status: 201, body: { id: 'p3', status: 'starting' } }),
        'GET /replicate/v1/predictions/p3': () => ({ body: { id: 'p3', status: 'processing' } }),
        'POST /replicate/v1/predictions/p3/cancel': () => ({ body: { id: 'p3', status: 'canceled' } }),
      }),
    );
    const running = await openai.videos.create({ model, prompt: 'x' });
    await openai.videos.delete(running.id);
    expect(provider.paths).toContain('POST /replicate/v1/predictions/p3/cancel');
  });
});
