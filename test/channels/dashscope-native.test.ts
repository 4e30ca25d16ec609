import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import dashscope from '../../channels/dashscope/index.ts';
import { asWave } from '../../core/formats/_shared/speech.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import quota from '../../plugins/quota/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { Provider, sentJson, sse } from './_provider.ts';

const film = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(3_000, 9)]);
let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [quota(), videoTasks({ poll: { first: 30, most: 50 }, fresh: 0 })],
    channels: [dashscope({ key: 'sk-dash', baseUrl: `${url}/compatible-mode/v1` })],
    fetch: { allow: ['127.0.0.1'] },
    routing: { attempts: 1 },
  }));
});
afterAll(() => provider.close());

async function keyWith(dollars: number) {
  const budget = { unit: 'micro-dollar', period: 'total', amount: dollars * 1e6 } as const;
  const { value, record } = await provider.gateway.apiKeys.create({ name: 'native', budgets: [budget] });
  return {
    value,
    client: new OpenAI({ apiKey: value, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 }),
    spent: async (): Promise<number> => {
      const [state] = await openLedger(provider.gateway.stores).states(record.id, [budget]);
      return (state?.spent ?? 0) / 1e6;
    },
    records: async (): Promise<number> => {
      const { records } = await openUsageLog(provider.gateway.stores).page({ keyId: record.id }, 5);
      return records.length;
    },
  };
}

describe('rerank', () => {
  const request = { model: 'qwen3-rerank', query: 'cats', documents: ['dogs', 'cats'], top_n: 1 };
  const post = async (value: string, body: object) =>
    fetch(`${provider.gateway.url}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  test('is asked for at the native API, and charged by its tokens', async () => {
    provider.says(() => ({
      body: {
        output: {
          results: [
            { index: 1, relevance_score: 0.9 },
            { index: 0, relevance_score: 0.1 },
          ],
        },
        usage: { total_tokens: 500 },
        request_id: 'r1',
      },
    }));
    const { value, spent } = await keyWith(1);
    const reply = await post(value, { ...request, return_documents: true });
    expect(await reply.json()).toMatchObject({
      id: 'r1',
      results: [{ index: 1, relevance_score: 0.9, document: { text: 'cats' } }],
      usage: { prompt_tokens: 500 },
    });
    expect(provider.paths).toEqual(['POST /api/v1/services/rerank/text-rerank/text-rerank']);
    expect(provider.requests[0]?.headers.authorization).toBe('Bearer sk-dash');
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'qwen3-rerank',
      input: { query: 'cats', documents: ['dogs', 'cats'] },
      parameters: { return_documents: false, top_n: 1 },
    });
    await expect.poll(spent).toBe(0.000_05);
  });

  test.each([
    [400, { code: 'InvalidParameter', message: 'documents is too long', request_id: 'x' }, 400],
    [401, { code: 'InvalidApiKey', message: 'Invalid API-key provided.', request_id: 'x' }, 502],
    [200, { output: {}, request_id: 'x' }, 502],
  ])('that answers %i and %j is understood', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const { value } = await keyWith(1);
    expect((await post(value, request)).status).toBe(expected);
  });
});

describe('a video', () => {
  // The catalogue: wan2.7 0.086012 a second of 720p, 0.143353 of 1080p
  test.each([
    [
      { model: 'wan2.7-t2v', seconds: '4', size: '1280x720' },
      { duration: 4, resolution: '720P', ratio: '16:9' },
      0.344_048,
    ],
    [{ model: 'wan2.7-t2v', seconds: '4' }, { duration: 4 }, 0.573_412],
  ])('asked for as %j is ordered, asked about and given', async (fields, parameters, dollars) => {
    let polls = 0;
    provider.says(({ url = '', method, headers }) => {
      if (url.endsWith('/films/1.mp4')) return { headers: { 'content-type': 'video/mp4' }, body: film };
      if (method === 'POST')
        return { body: { output: { task_id: 't1', task_status: 'PENDING' }, request_id: 'x' } };
      polls += 1;
      const video =
        polls < 2
          ? { task_status: 'RUNNING' }
          : { task_status: 'SUCCEEDED', video_url: `http://${headers.host}/films/1.mp4` };
      return { body: { output: { task_id: 't1', ...video }, request_id: 'x' } };
    });
    const { client, spent } = await keyWith(2);
    const { id } = await client.videos.create({ prompt: 'a cat', ...fields } as OpenAI.VideoCreateParams);
    await expect.poll(async () => (await client.videos.retrieve(id)).status).toBe('completed');
    const bytes = Buffer.from(await (await client.videos.downloadContent(id)).arrayBuffer());
    expect(bytes.equals(film)).toBe(true);
    expect(provider.paths.slice(0, 2)).toEqual([
      'POST /api/v1/services/aigc/video-generation/video-synthesis',
      'GET /api/v1/tasks/t1',
    ]);
    expect(provider.requests[0]?.headers['x-dashscope-async']).toBe('enable');
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: fields.model,
      input: { prompt: 'a cat' },
      parameters,
    });
    expect(await spent()).toBe(dollars);
  });

  test('begins and ends with images, and is not charged when it fails', async () => {
    provider.says(({ method }) => ({
      body: {
        output:
          method === 'POST'
            ? { task_id: 't2', task_status: 'PENDING' }
            : { task_id: 't2', task_status: 'FAILED', code: 'InternalError', message: 'It broke.' },
      },
    }));
    const { client, spent } = await keyWith(2);
    const images = ['https://example.com/1.png', 'https://example.com/2.png'];
    const request = {
      model: 'wan2.7-i2v',
      prompt: 'a cat',
      images: JSON.stringify(images),
      metadata: '{"watermark":true,"size":"1920*1080"}',
    };
    const reply = await fetch(`${provider.gateway.url}/v1/videos`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...request, images }),
    });
    expect(reply.headers.get('x-sluice-loss')).toBe('metadata.size');
    const { id } = (await reply.json()) as { id: string };
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'wan2.7-i2v',
      input: {
        prompt: 'a cat',
        media: [
          { type: 'first_frame', url: images[0] },
          { type: 'last_frame', url: images[1] },
        ],
      },
      parameters: { watermark: true, duration: 4 },
    });
    await expect.poll(async () => (await client.videos.retrieve(id)).status).toBe('failed');
    await expect.poll(spent).toBe(0);
  });
});

describe('images', () => {
  const url = 'https://dashscope-result.example/a.png';

  test('of Qwen are made at once, and charged', async () => {
    provider.says(() => ({
      body: { output: { choices: [{ message: { role: 'assistant', content: [{ image: url }] } }] } },
    }));
    const { client, spent } = await keyWith(1);
    const reply = await client.images.generate({
      model: 'qwen-image-2.0',
      prompt: 'a cat',
      size: '1024x1536',
      response_format: 'url',
      negative_prompt: 'dogs',
    } as OpenAI.ImageGenerateParamsNonStreaming);
    expect(reply.data).toEqual([{ url }]);
    expect(provider.paths).toEqual(['POST /api/v1/services/aigc/multimodal-generation/generation']);
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'qwen-image-2.0',
      input: { messages: [{ role: 'user', content: [{ text: 'a cat' }] }] },
      parameters: { negative_prompt: 'dogs', size: '1024*1536', n: 1 },
    });
    await expect.poll(spent).toBe(0.035);
  });

  test.each([
    [
      'wan2.6-t2i',
      'image-generation/generation',
      { messages: [{ role: 'user', content: [{ text: 'a cat' }] }] },
    ],
    ['wan2.2-t2i-flash', 'text2image/image-synthesis', { prompt: 'a cat' }],
  ])('of %s are waited for', async (model, path, input) => {
    let questions = 0;
    provider.says(({ method }) => {
      if (method === 'POST') return { body: { output: { task_id: 't/1', task_status: 'PENDING' } } };
      questions += 1;
      return {
        body: {
          output:
            questions < 2 ? { task_status: 'RUNNING' } : { task_status: 'SUCCEEDED', results: [{ url }] },
        },
      };
    });
    const client = new OpenAI({
      apiKey: provider.gateway.key,
      baseURL: `${provider.gateway.url}/v1`,
      maxRetries: 0,
    });
    const reply = await client.images.generate({ model, prompt: 'a cat', response_format: 'url' });
    expect(reply.data).toEqual([{ url }]);
    expect(provider.paths).toEqual([
      `POST /api/v1/services/aigc/${path}`,
      'GET /api/v1/tasks/t%2F1',
      'GET /api/v1/tasks/t%2F1',
    ]);
    expect(provider.requests[0]?.headers['x-dashscope-async']).toBe('enable');
    expect(sentJson(provider.requests[0]!)).toMatchObject({ model, input, parameters: { n: 1 } });
  });

  test.each([
    [{ task_status: 'FAILED', code: 'DataInspectionFailed', message: 'Not this.' }, 400],
    [{ task_status: 'FAILED', code: 'InternalError', message: 'Broken.' }, 502],
  ])('%j is an error', async (output, status) => {
    provider.says(({ method }) => ({
      body: { output: method === 'POST' ? { task_id: 't', task_status: 'PENDING' } : output },
    }));
    const client = new OpenAI({
      apiKey: provider.gateway.key,
      baseURL: `${provider.gateway.url}/v1`,
      maxRetries: 0,
    });
    await expect(client.images.generate({ model: 'wan2.6-t2i', prompt: 'x' })).rejects.toMatchObject({
      status,
    });
  });
});

describe('speech', () => {
  const sound = Buffer.from(Array.from({ length: 3_000 }, (_, index) => (index * 7) % 256));
  const speechRequest = { model: 'qwen3-tts-flash', voice: 'Cherry', input: '你好 ok' };
  const piece = (bytes: Buffer | undefined, finish: string | null) => ({
    output: {
      finish_reason: finish,
      audio: {
        data: bytes?.toString('base64') ?? '',
        url: finish === null ? '' : 'https://example.com/a.wav',
      },
    },
    usage: { characters: 7 },
    request_id: 'x',
  });
  /** Refuses what is not in the words of https://www.alibabacloud.com/help/en/model-studio/qwen-tts */
  const speaks = (events: readonly object[]) =>
    provider.says((request) => {
      const { input, ...rest } = sentJson(request) as { input?: { text?: unknown; voice?: unknown } };
      const isKnown = typeof input?.text === 'string' && typeof input.voice === 'string';
      if (!isKnown || Object.keys(rest).join() !== 'model' || request.headers['x-dashscope-sse'] !== 'enable')
        return { status: 400, body: { code: 'InvalidParameter', message: 'url error', request_id: 'x' } };
      return sse(events);
    });
  const whole = [
    piece(sound.subarray(0, 1_000), null),
    piece(sound.subarray(1_000), null),
    piece(undefined, 'stop'),
  ];

  test('is given as samples, and the characters that the provider counts are charged', async () => {
    speaks(whole);
    const { client, spent } = await keyWith(1);
    const reply = await client.audio.speech.create({
      ...speechRequest,
      response_format: 'pcm',
      language_type: 'Chinese',
    } as OpenAI.Audio.SpeechCreateParams);
    expect(reply.headers.get('x-sluice-loss')).toBeNull();
    expect(Buffer.from(await reply.arrayBuffer()).equals(sound)).toBe(true);
    expect(provider.paths).toEqual(['POST /api/v1/services/aigc/multimodal-generation/generation']);
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'qwen3-tts-flash',
      input: { text: '你好 ok', voice: 'Cherry', language_type: 'Chinese' },
    });
    // The catalogue: 0.00001 a character
    await expect.poll(spent).toBe(0.000_07);
  });

  test('is WAV where another format is wanted, which is named as lost', async () => {
    speaks(whole);
    const { client } = await keyWith(1);
    const reply = await client.audio.speech.create({ ...speechRequest, instructions: 'Softly.', speed: 2 });
    expect(reply.headers.get('content-type')).toBe('audio/wav');
    expect(reply.headers.get('x-sluice-loss')).toBe('speed, instructions, response_format');
    expect(Buffer.from(await reply.arrayBuffer()).equals(asWave(sound, 24_000))).toBe(true);
  });

  test('comes as events where the client wants a stream', async () => {
    speaks(whole);
    const { client } = await keyWith(1);
    const reply = await client.audio.speech.create({
      ...speechRequest,
      response_format: 'pcm',
      stream_format: 'sse',
    });
    const events = (await reply.text())
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map(
        (frame) =>
          JSON.parse(frame.replace(/^(?:event: .*\n)?data: /, '')) as { type: string; audio?: string },
      );
    expect(events.map(({ type }) => type)).toEqual([
      'speech.audio.delta',
      'speech.audio.delta',
      'speech.audio.done',
    ]);
    const pieces = events.flatMap(({ audio = '' }) => [Buffer.from(audio, 'base64')]);
    expect(Buffer.concat(pieces).equals(sound)).toBe(true);
  });

  test('is refused by a budget that pays for each Han character once', async () => {
    speaks(whole);
    // Seven characters are 70 micro-dollars, five 50.
    const { client } = await keyWith(0.000_06);
    await expect(client.audio.speech.create(speechRequest)).rejects.toMatchObject({ status: 429 });
    expect(provider.requests).toEqual([]);
    const { client: other } = await keyWith(0.000_07);
    await expect(other.audio.speech.create(speechRequest)).resolves.toBeDefined();
  });

  // Five characters are 50 micro-dollars: sound that had begun was made for the whole text.
  test.each([
    ['is cut', whole.slice(0, 2), 0.000_05],
    ['has no sound', [piece(undefined, 'stop')], 0],
    [
      'ends with an error',
      [whole[0]!, { type: 'error', code: 'InternalError', message: 'It broke.' }],
      0.000_05,
    ],
  ])('of a stream that %s is an error, and is charged where sound had begun', async (_, events, cost) => {
    speaks(events);
    const { client, spent, records } = await keyWith(1);
    await expect(
      client.audio.speech.create({ ...speechRequest, response_format: 'pcm' }),
    ).rejects.toMatchObject({
      status: 502,
    });
    // A charge is booked together with its record.
    await expect.poll(records).toBe(1);
    expect(await spent()).toBe(cost);
  });

  test('that the provider refuses tells why', async () => {
    provider.says(() => ({
      status: 400,
      body: { code: 'InvalidParameter', message: 'Voice is unknown.', request_id: 'x' },
    }));
    const { client } = await keyWith(1);
    await expect(client.audio.speech.create(speechRequest)).rejects.toMatchObject({ status: 400 });
  });
});
