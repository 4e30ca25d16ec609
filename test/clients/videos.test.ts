import type { ServerResponse } from 'node:http';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import doubao from '../../channels/doubao.ts';
import gemini from '../../channels/gemini.ts';
import jimeng from '../../channels/jimeng/index.ts';
import kling from '../../channels/kling/index.ts';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { reason, vendors, VideoUpstream } from '../flows/_video-vendors.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

const kinds = { sora, kling, jimeng, doubao, vidu, gemini } as const;
const provider = new VideoUpstream();
const film = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42', 'latin1'), Buffer.alloc(50_000, 3)]);
let upstream: ScriptedUpstream;
let files: ScriptedUpstream;
let gateway: TestGateway;
let client: OpenAI;

beforeAll(async () => {
  const send = (response: ServerResponse): void =>
    void response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
  // One of them sends films itself, the others say where they are.
  upstream = await startUpstream((request, response) => {
    if (/\/content(\?|$)/.test(request.url)) send(response);
    else provider.script(request, response);
  });
  files = await startUpstream((_, response) => send(response));
  provider.address = `${files.url}/files`;
  gateway = await startGateway({
    plugins: [videoTasks({ poll: { first: 40, most: 60 }, fresh: 0 })],
    fetch: { allow: ['127.0.0.1/32'] },
    channels: vendors.map(({ kind, key, base, model }) =>
      kinds[kind as keyof typeof kinds]({ key, baseUrl: `${upstream.url}/${kind}${base}`, models: [model] }),
    ),
  });
  client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.close();
  await Promise.all([upstream.close(), files.close()]);
});

describe('videos, by the official client', () => {
  test.each(vendors.map(({ kind, model }) => [kind, model]))('%s', async (_, model) => {
    const { id } = await client.videos.create({ model, prompt: 'the moon' });
    const theirs = provider.last;
    const stateOf = async () => (await client.videos.retrieve(id)).status;
    provider.stages.set(theirs, 'in_progress');
    await expect.poll(stateOf).toBe('in_progress');
    provider.stages.set(theirs, 'completed');
    await expect.poll(stateOf).toBe('completed');
    const response = await client.videos.downloadContent(id);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(film);
    expect((await client.videos.list({ limit: 1 })).data.map((video) => video.id)).toEqual([id]);
  });

  test.each(vendors.map(({ kind, model }) => [kind, model]))('%s: one that fails', async (_, model) => {
    const { id } = await client.videos.create({ model, prompt: 'the moon' });
    provider.stages.set(provider.last, 'failed');
    await expect.poll(async () => (await client.videos.retrieve(id)).status).toBe('failed');
    const { error } = await client.videos.retrieve(id);
    expect(error?.message).toContain(reason);
  });
});
