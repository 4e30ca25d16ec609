import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import xai from '../../channels/xai/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import quota from '../../plugins/quota/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { Provider, refusal, sentJson } from './_provider.ts';

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(300, 3)]);
const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
const picture = () => toFile(png, 'cat.png', { type: 'image/png' });
const film = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(3_000, 9)]);
const sound = Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7 + 255) % 256));

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [quota(), videoTasks({ poll: { first: 30, most: 50 }, fresh: 0 })],
    channels: [xai({ key: 'xai-key', baseUrl: `${url}/v1` })],
    fetch: { allow: ['127.0.0.1'] },
    routing: { attempts: 1 },
  }));
});
afterAll(() => provider.close());

async function keyWith(dollars: number) {
  const budget = { unit: 'micro-dollar', period: 'total', amount: dollars * 1e6 } as const;
  const { value, record } = await provider.gateway.apiKeys.create({ name: 'maker', budgets: [budget] });
  return {
    client: new OpenAI({ apiKey: value, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 }),
    spent: async (): Promise<number> => {
      const [state] = await openLedger(provider.gateway.stores).states(record.id, [budget]);
      return (state?.spent ?? 0) / 1e6;
    },
  };
}

describe('an image', () => {
  test.each([1, 3])('is made of %i others, for what the provider states', async (count) => {
    provider.says(() => ({
      body: { data: [{ b64_json: 'aGVsbG8=' }], usage: { cost_in_usd_ticks: 220_000_000 } },
    }));
    const { client, spent } = await keyWith(1);
    const images = await Promise.all(Array.from({ length: count }, picture));
    const reply = await client.images.edit({
      model: 'grok-imagine-image',
      prompt: 'a hat',
      image: count === 1 ? images[0]! : images,
      size: '1024x1024',
    });
    expect(reply.data?.[0]?.b64_json).toBe('aGVsbG8=');
    expect(provider.paths).toEqual(['POST /v1/images/edits']);
    const source = { url: dataUrl, type: 'image_url' };
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'grok-imagine-image',
      prompt: 'a hat',
      aspect_ratio: '1:1',
      response_format: 'b64_json',
      ...(count === 1 ? { image: source } : { images: [source, source, source] }),
    });
    await expect.poll(spent).toBe(0.022);
  });

  test.each([
    ['a mask', { mask: picture }, 200],
    ['four images', { count: 4 }, 400],
  ])(
    'from %s is answered as it can be made',
    async (_what, { mask, count = 1 }: { mask?: typeof picture; count?: number }, status) => {
      provider.says(() => ({ body: { data: [{ b64_json: 'aGVsbG8=' }] } }));
      const { client } = await keyWith(1);
      const images = await Promise.all(Array.from({ length: count }, picture));
      const call = client.images
        .edit({
          model: 'grok-imagine-image',
          prompt: 'a hat',
          image: images,
          ...(mask === undefined ? {} : { mask: await mask() }),
        })
        .withResponse();
      if (status === 200) expect((await call).response.headers.get('x-sluice-loss')).toBe('mask');
      else expect((await refusal(call)).status).toBe(status);
    },
  );

  test('that the provider holds for unfit is refused', async () => {
    provider.says(() => ({ body: { data: [{ url: 'https://x.ai/1.png', respect_moderation: false }] } }));
    const { client } = await keyWith(1);
    const call = client.images.edit({ model: 'grok-imagine-image', prompt: 'a hat', image: await picture() });
    expect((await refusal(call)).status).toBe(400);
  });
});

describe('a video', () => {
  // https://docs.x.ai/developers/pricing: 0.08, 0.14 and 0.25 a second by resolution, and 0.01 for each image
  test.each([
    [{ seconds: '4', size: '1280x720' }, { duration: 4, aspect_ratio: '16:9', resolution: '720p' }, 0.56],
    [{ resolution: '1080p', seconds: '4' }, { duration: 4, resolution: '1080p' }, 1],
    [{}, { duration: 4 }, 0.32],
    [{ metadata: JSON.stringify({ video: { url: 'https://example.com/long.mp4' } }) }, { duration: 4 }, 0.32],
  ])('asked for as %j is ordered, asked about and given', async (fields, sent, dollars) => {
    let polls = 0;
    provider.says(({ url = '', method, headers }) => {
      if (url.endsWith('/films/1.mp4')) return { headers: { 'content-type': 'video/mp4' }, body: film };
      if (method === 'POST') return { body: { request_id: 'r1' } };
      polls += 1;
      return polls < 2
        ? { status: 202, headers: { 'content-type': 'application/json' } }
        : { body: { status: 'done', video: { url: `http://${headers.host}/films/1.mp4`, duration: 4 } } };
    });
    const { client, spent } = await keyWith(2);
    const { id } = await client.videos.create({
      model: 'grok-imagine-video-1.5',
      prompt: 'a cat',
      ...fields,
    } as OpenAI.VideoCreateParams);
    await expect.poll(async () => (await client.videos.retrieve(id)).status).toBe('completed');
    const bytes = Buffer.from(await (await client.videos.downloadContent(id)).arrayBuffer());
    expect(bytes.equals(film)).toBe(true);
    expect(provider.paths.slice(0, 2)).toEqual(['POST /v1/videos/generations', 'GET /v1/videos/r1']);
    expect(sentJson(provider.requests[0]!)).toEqual({
      model: 'grok-imagine-video-1.5',
      prompt: 'a cat',
      ...sent,
    });
    expect(await spent()).toBe(dollars);
  });

  test('that begins with an image costs that image too', async () => {
    provider.says(({ method }) =>
      method === 'POST' ? { body: { request_id: 'r2' } } : { body: { status: 'pending' } },
    );
    const { client, spent } = await keyWith(2);
    await client.videos.create({
      model: 'grok-imagine-video-1.5',
      prompt: 'a cat',
      seconds: '4',
      input_reference: await picture(),
    });
    expect(sentJson(provider.requests[0]!)).toMatchObject({ image: { url: dataUrl } });
    await expect.poll(spent).toBe(0.33);
  });

  test.each([
    [{ status: 'failed', error: { code: 'internal', message: 'It broke.' } }],
    [{ status: 'expired' }],
    [{ status: 'done', video: { url: 'https://x.ai/1.mp4', respect_moderation: false } }],
  ])('of which %j is told is not charged', async (status) => {
    provider.says(({ method }) => ({ body: method === 'POST' ? { request_id: 'r3' } : status }));
    const { client, spent } = await keyWith(2);
    const { id } = await client.videos.create({ model: 'grok-imagine-video-1.5', prompt: 'a cat' });
    await expect.poll(async () => (await client.videos.retrieve(id)).status).toBe('failed');
    await expect.poll(spent).toBe(0);
  });
});

describe('speech', () => {
  const request = { model: 'grok-voice-tts-1.0', voice: 'eve', input: 'Hello there' };

  test('is given as the bytes that came, and charged by the character', async () => {
    provider.says(() => ({ headers: { 'content-type': 'audio/mpeg' }, body: sound }));
    const { client, spent } = await keyWith(1);
    const response = await client.audio.speech.create({ ...request, instructions: 'calm' });
    expect(Buffer.from(await response.arrayBuffer()).equals(sound)).toBe(true);
    expect(response.headers.get('x-sluice-loss')).toBe('instructions');
    // A video of a test before may still be asked about.
    expect(provider.paths.filter((path) => !path.includes('/videos/'))).toEqual(['POST /v1/tts']);
    expect(sentJson(provider.requests.find(({ method }) => method === 'POST')!)).toEqual({
      text: 'Hello there',
      voice_id: 'eve',
      language: 'auto',
      output_format: { codec: 'mp3', sample_rate: 24_000 },
    });
    await expect.poll(spent).toBe(0.000_165);
  });

  test('is refused as a kind of file that it does not give', async () => {
    const { client } = await keyWith(1);
    const call = client.audio.speech.create({ ...request, response_format: 'flac' });
    expect((await refusal(call)).status).toBe(400);
  });
});
