import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fal from '../../channels/fal/index.ts';
import sora from '../../channels/sora.ts';
import xai from '../../channels/xai/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import quota from '../../plugins/quota/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { Provider, refusal } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [quota(), videoTasks({ fresh: 0 })],
    channels: [
      sora({ key: 'k', baseUrl: `${url}/v1` }),
      fal({ key: 'k', baseUrl: url, models: ['openai/gpt-image-2', 'fal-ai/nano-banana-pro'], mode: 'sync' }),
      xai({ key: 'k', baseUrl: `${url}/v1`, models: ['grok-imagine-image-2.0'] }),
    ],
    prices: {
      'sora-2-pro': { perSecond: 0.3, perSecondAt: { '1080p': 0.5 } },
      'sora-2': { perSecond: 0.1 },
    },
    routing: { attempts: 1 },
  }));
});
afterAll(() => provider.close());

async function keyWith(dollars: number): Promise<{ readonly client: OpenAI; spent(): Promise<number> }> {
  const budget = { unit: 'micro-dollar', period: 'total', amount: dollars * 1e6 } as const;
  const { value, record } = await provider.gateway.apiKeys.create({ name: 'sized', budgets: [budget] });
  return {
    client: new OpenAI({ apiKey: value, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 }),
    spent: async () => {
      const [state] = await openLedger(provider.gateway.stores).states(record.id, [budget]);
      return (state?.spent ?? 0) / 1e6;
    },
  };
}

/** Requests that make something. The gateway also asks how earlier videos are getting on. */
const made = () => provider.requests.filter(({ method }) => method === 'POST');

const film = { id: 'v1', object: 'video', status: 'queued', progress: 0 };
const image = { data: [{ b64_json: 'aGVsbG8=' }], images: [{ url: 'https://cdn.example/1.png' }] };

describe('a video', () => {
  // https://developers.openai.com/api/docs/pricing: sora-2-pro 0.30 a second, 0.50 of 1024 lines
  test.each([
    [{ model: 'sora-2-pro', seconds: '8', size: '1280x720' }, 2.4],
    [{ model: 'sora-2-pro', seconds: '8', size: '1792x1024' }, 4],
    [{ model: 'sora-2-pro', seconds: '4' }, 1.2],
    [{ model: 'sora-2-pro', seconds: '4', resolution: '1080p' }, 2],
    // Words that nobody knows cost what a second can cost at most.
    [{ model: 'sora-2-pro', seconds: '4', metadata: JSON.stringify({ quality: 'cinema' }) }, 2],
    [
      {
        model: 'sora-2-pro',
        seconds: '4',
        size: '1280x720',
        metadata: JSON.stringify({ size: '1792x1024' }),
      },
      2,
    ],
    [{ model: 'sora-2', seconds: '4', size: '1792x1024' }, 0.4],
  ])('asked for as %j costs %d', async (fields, dollars) => {
    provider.says(() => ({ body: film }));
    const { client, spent } = await keyWith(dollars);
    await client.videos.create({ prompt: 'A cat', ...fields } as OpenAI.VideoCreateParams);
    await expect.poll(spent).toBe(dollars);
  });

  test('is not made where the budget holds its length alone, but not its size', async () => {
    provider.says(() => ({ body: film }));
    const { client } = await keyWith(1.9);
    const request = { prompt: 'A cat', model: 'sora-2-pro', seconds: '4', size: '1792x1024' } as const;
    expect((await refusal(client.videos.create(request))).status).toBe(429);
    expect(made()).toEqual([]);
  });
});

describe('images', () => {
  // https://fal.ai/models/openai/gpt-image-2, as the catalogue has it
  test.each([
    [{ model: 'openai/gpt-image-2', quality: 'low', size: '1024x1024' }, 0.006],
    [{ model: 'openai/gpt-image-2', quality: 'high', size: '1024x1536' }, 0.165],
    // The table has the same size lying.
    [{ model: 'openai/gpt-image-2', quality: 'high', size: '1536x1024' }, 0.165],
    [{ model: 'openai/gpt-image-2', quality: 'high', size: '3840x2160' }, 0.401],
    // https://fal.ai/models/fal-ai/nano-banana-pro: 0.15, and 0.30 of 4K
    [{ model: 'fal-ai/nano-banana-pro', resolution: '4K' }, 0.3],
    [{ model: 'fal-ai/nano-banana-pro', resolution: '1K' }, 0.15],
    // https://docs.x.ai/developers/pricing
    [{ model: 'grok-imagine-image-2.0', resolution: '1k' }, 0.04],
    [{ model: 'grok-imagine-image-2.0', resolution: '2k' }, 0.06],
    [{ model: 'grok-imagine-image-2.0', resolution: '2k', size: '1024x1024' }, 0.06],
  ])('asked for as %j cost %d each', async (fields, dollars) => {
    provider.says(() => ({ body: image }));
    const { client, spent } = await keyWith(1);
    await client.images.generate({ prompt: 'A cat', ...fields } as OpenAI.ImageGenerateParamsNonStreaming);
    await expect.poll(spent).toBe(dollars);
  });

  test('are not made where the budget may not hold the size that the provider chooses', async () => {
    provider.says(() => ({ body: image }));
    const { client } = await keyWith(0.3);
    const request = { prompt: 'A cat', model: 'openai/gpt-image-2' };
    expect((await refusal(client.images.generate(request))).status).toBe(429);
    expect(made()).toEqual([]);
  });
});
