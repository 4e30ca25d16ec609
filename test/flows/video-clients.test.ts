import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { fetchRaw } from './_wire.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  gateway = await startGateway({
    plugins: [videoTasks({ poll: { first: 50, most: 100 }, fresh: 20 })],
    channels: [demo()],
    prices: { demo: { perSecond: 0.1 } },
  });
  client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
afterAll(() => gateway.close());

async function whenOver(id: string): Promise<OpenAI.Video> {
  let video = await client.videos.retrieve(id);
  await expect
    .poll(async () => (video = await client.videos.retrieve(id)).status)
    .toMatch(/completed|failed/);
  return video;
}

describe('the official client makes videos of the demo', () => {
  test('create, retrieve, download, remix, list and delete', async () => {
    const begun = await client.videos.create({
      model: 'demo',
      prompt: 'a cat !ready=300',
      seconds: '8',
      size: '1280x720',
    });
    expect(begun).toMatchObject({ object: 'video', model: 'demo', prompt: 'a cat !ready=300', error: null });
    expect(begun.id).toMatch(/^video_[0-9a-f]{48}$/);
    const video = await whenOver(begun.id);
    expect(video).toMatchObject({ status: 'completed', progress: 100, seconds: '8', size: '1280x720' });
    expect(video.completed_at).toBeGreaterThanOrEqual(video.created_at);
    const response = await client.videos.downloadContent(begun.id);
    expect(response.headers.get('content-type')).toBe('video/mp4');
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.subarray(4, 8).toString()).toBe('ftyp');
    const part = await fetchRaw(gateway, `/v1/videos/${begun.id}/content`, {
      headers: { range: 'bytes=100-199' },
    });
    expect(part.status).toBe(206);
    expect(part.headers['content-range']).toBe(`bytes 100-199/${bytes.length}`);
    expect(part.bytes).toEqual(bytes.subarray(100, 200));

    const again = await client.videos.remix(begun.id, { prompt: 'a dog !ready=0' });
    expect(again).toMatchObject({ model: 'demo', remixed_from_video_id: begun.id, prompt: 'a dog !ready=0' });
    expect(again.id).not.toBe(begun.id);

    const listed = await client.videos.list({ limit: 1 });
    expect(listed.data.map(({ id }) => id)).toEqual([again.id]);
    const all: string[] = [];
    for await (const one of client.videos.list({ limit: 1, order: 'asc' })) all.push(one.id);
    expect(all).toEqual([begun.id, again.id]);

    expect(await client.videos.delete(begun.id)).toEqual({
      id: begun.id,
      object: 'video.deleted',
      deleted: true,
    });
    await expect(client.videos.retrieve(begun.id)).rejects.toMatchObject({ status: 404, code: 'not_found' });
  });

  test('a failed one says why, and has no content', async () => {
    const { id } = await client.videos.create({ model: 'demo', prompt: 'a cat !ready=50 !fail' });
    expect(await whenOver(id)).toMatchObject({
      status: 'failed',
      error: { code: 'demo_failed', message: 'The demo failed, as you asked.' },
    });
    await expect(client.videos.downloadContent(id)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('The demo failed'),
    });
  });

  test('one that is not ready has no content', async () => {
    const { id, status } = await client.videos.create({ model: 'demo', prompt: 'a cat !ready=600000' });
    expect(['queued', 'in_progress']).toContain(status);
    await expect(client.videos.downloadContent(id)).rejects.toMatchObject({
      status: 400,
      code: 'video_not_ready',
    });
  });

  test('a file as the reference travels along', async () => {
    const video = await client.videos.create({
      model: 'demo',
      prompt: 'moving !ready=0',
      input_reference: await toFile(png, 'cat.png', { type: 'image/png' }),
    });
    expect(video.status).toBe('completed');
    await expect(
      client.videos.create({
        model: 'demo',
        prompt: 'moving',
        input_reference: await toFile(Buffer.from('hello'), 'cat.png', { type: 'image/png' }),
      }),
    ).rejects.toMatchObject({ status: 400, param: 'input_reference' });
  });

  test('what somebody else has made does not exist', async () => {
    const { id } = await client.videos.create({ model: 'demo', prompt: 'mine !ready=0' });
    const { value } = await gateway.apiKeys.create({ name: 'stranger' });
    const stranger = new OpenAI({ apiKey: value, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const requests = [
      () => stranger.videos.retrieve(id),
      () => stranger.videos.delete(id),
      () => stranger.videos.downloadContent(id),
      () => stranger.videos.remix(id, { prompt: 'theirs' }),
    ];
    for (const request of requests) await expect(request()).rejects.toMatchObject({ status: 404 });
    expect((await stranger.videos.list()).data).toEqual([]);
    expect(await client.videos.retrieve(id)).toMatchObject({ id });
  });

  test('what was asked for wrongly is named', async () => {
    const wrong: readonly (readonly [object, string])[] = [
      [{ prompt: 'x' }, 'model'],
      [{ model: 'demo' }, 'prompt'],
      [{ model: 'demo', prompt: 'x', seconds: 'long' }, 'seconds'],
      [{ model: 'demo', prompt: 'x', seconds: '-1' }, 'seconds'],
      [{ model: 'demo', prompt: 'x', size: 'big' }, 'size'],
      [{ model: 'demo', prompt: 'x', n: 2 }, 'n'],
      [{ model: 'demo', prompt: 'x', input_reference: { url: 'x' } }, 'input_reference'],
      [{ model: 'demo', prompt: 'x', metadata: 'x' }, 'metadata'],
    ];
    for (const [body, param] of wrong) {
      const answer = await fetchRaw(gateway, '/v1/videos', { body: body as Record<string, unknown> });
      expect([answer.status, (JSON.parse(answer.text) as { error: { param: string } }).error.param]).toEqual([
        400,
        param,
      ]);
    }
    const variant = await fetchRaw(gateway, '/v1/videos/x/content?variant=sound');
    expect(variant.status).toBe(400);
  });
});
