import { createHash } from 'node:crypto';
import { request } from 'node:http';
import type { ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { startProcess } from './_process.ts';
import { fetchRaw, type Access } from './_wire.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const piece = Buffer.alloc(1024 * 1024);
for (let index = 0; index < piece.length; index += 4)
  piece.writeUInt32LE((index * 2654435761) % 2 ** 32, index);
const pieces = 25;
const whole = piece.length * pieces;
const wholeHash = (() => {
  const hash = createHash('sha256');
  for (let count = 0; count < pieces; count += 1) hash.update(piece);
  return hash.digest('hex');
})();

let upstream: ScriptedUpstream;
let gone = false;
const fileHeaders: Record<string, unknown>[] = [];

/** A provider whose videos are finished at once: sora's behind its key, the other's at an address. */
function script({ method, url, headers }: SeenRequest, response: ServerResponse): void {
  const json = (body: object): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (url.startsWith('/file') || url.startsWith('/v1/videos/v1/content')) {
    fileHeaders.push(headers);
    if (url.startsWith('/v1') && headers.authorization !== 'Bearer sora-key') {
      response.writeHead(401).end();
      return;
    }
    if (gone && url === '/file.mp4') {
      response.writeHead(403).end('expired');
      return;
    }
    void sendFile(response, headers.range);
  } else if (url === '/page.mp4')
    response.writeHead(200, { 'content-type': 'text/html' }).end('<script>1</script>');
  else if (url.startsWith('/v1/videos'))
    json({ id: 'v1', object: 'video', status: 'completed', progress: 100 });
  else if (method === 'POST') json({ task_id: url.includes('img') ? 'page' : 't1', state: 'created' });
  else {
    const file = url.includes('/page/') ? 'page.mp4' : gone ? 'file-2.mp4' : 'file.mp4';
    json({ state: 'success', creations: [{ id: 'c', url: `${upstream.url}/${file}` }] });
  }
}

async function sendFile(response: ServerResponse, range: string | undefined): Promise<void> {
  const [, first = '0', last = String(whole - 1)] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
  const [from, to] = [Number(first), Number(last)];
  response.writeHead(range === undefined ? 200 : 206, {
    'content-type': 'video/mp4',
    'content-length': String(to - from + 1),
    'accept-ranges': 'bytes',
    'x-internal': 'secret',
    ...(range === undefined ? {} : { 'content-range': `bytes ${from}-${to}/${whole}` }),
  });
  for (let at = from; at <= to && !response.destroyed;) {
    const begin = at % piece.length;
    const chunk = piece.subarray(begin, Math.min(piece.length, begin + to - at + 1));
    at += chunk.length;
    if (!response.write(chunk)) await room(response);
  }
  response.end();
}

/** Resolves when the reader has taken what was sent, or has left. */
function room(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      response.off('drain', over).off('close', over);
      resolve();
    };
    response.on('drain', over).on('close', over);
  });
}

async function made(access: Access, model: string): Promise<string> {
  const answer = await fetchRaw(access, '/v1/videos', { body: { model, prompt: 'the moon' } });
  const { id } = JSON.parse(answer.text) as { id: string };
  await expect
    .poll(
      async () =>
        (JSON.parse((await fetchRaw(access, `/v1/videos/${id}`)).text) as { status: string }).status,
    )
    .toBe('completed');
  return id;
}

/** Downloads without holding what comes. */
function hashed(
  { url, key }: Access,
  path: string,
  range?: string,
): Promise<{ readonly hash: string; readonly length: number }> {
  return new Promise((resolve, reject) => {
    const hash = createHash('sha256');
    let length = 0;
    const headers = { authorization: `Bearer ${key}`, ...(range === undefined ? {} : { range }) };
    request(new URL(path, url), { headers, agent: false }, (response) => {
      response.on('data', (chunk: Buffer) => {
        hash.update(chunk);
        length += chunk.length;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ hash: hash.digest('hex'), length }));
    })
      .on('error', reject)
      .end();
  });
}

const models = ['sora-2', 'viduq2'];
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream(script);
  gateway = await startGateway(config('proxy', ['127.0.0.1']));
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function config(delivery: 'proxy' | 'redirect', allow: readonly string[]) {
  return {
    fetch: { allow: [...allow] },
    plugins: [videoTasks({ poll: { first: 20, most: 20 }, fresh: 0, delivery })],
    channels: [
      sora({ key: 'sora-key', baseUrl: `${upstream.url}/v1`, models: ['sora-2'] }),
      vidu({ key: 'vidu-key', baseUrl: `${upstream.url}/ent/v2`, models: ['viduq2'] }),
    ],
  };
}

describe.each(models)('the content of a video of %s', (model) => {
  test('comes whole, and in the parts that a player asks for', async () => {
    const id = await made(gateway, model);
    expect(await hashed(gateway, `/v1/videos/${id}/content`)).toEqual({ hash: wholeHash, length: whole });
    const part = await fetchRaw(gateway, `/v1/videos/${id}/content`, {
      headers: { range: `bytes=1048570-1048585`, cookie: 'a=b' },
    });
    expect(part.status).toBe(206);
    expect(part.bytes).toEqual(Buffer.concat([piece.subarray(1048570), piece.subarray(0, 10)]));
    expect(part.headers).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': '16',
      'content-range': `bytes 1048570-1048585/${whole}`,
      'accept-ranges': 'bytes',
    });
    expect(part.headers['x-internal']).toBeUndefined();
    const [sent] = fileHeaders.slice(-1);
    expect(JSON.stringify(sent)).not.toContain(gateway.key);
    expect(sent?.cookie).toBeUndefined();
  });

  test('is let go of when its reader leaves', async () => {
    const id = await made(gateway, model);
    const before = upstream.requests.length;
    await new Promise<void>((resolve) => {
      const client = request(new URL(`/v1/videos/${id}/content`, gateway.url), {
        headers: { authorization: `Bearer ${gateway.key}` },
        agent: false,
      });
      client.on('response', (response) => {
        response.once('data', () => {
          client.destroy();
          resolve();
        });
        response.on('error', () => {});
      });
      client.on('error', () => {});
      client.end();
    });
    const contentRequest = upstream.requests.slice(before).find(({ url }) => /file|content/.test(url));
    await contentRequest?.closed;
    expect(contentRequest).toBeDefined();
  });
});

test('an address that is over is asked for again', async () => {
  const id = await made(gateway, 'viduq2');
  gone = true;
  try {
    expect(await hashed(gateway, `/v1/videos/${id}/content`)).toEqual({ hash: wholeHash, length: whole });
  } finally {
    gone = false;
  }
});

test('a page in the place of a video does not run', async () => {
  const answer = await fetchRaw(gateway, '/ent/v2/img2video', {
    body: { model: 'viduq2', images: ['https://example.com/a.png'], prompt: 'x' },
  });
  const { task_id: id } = JSON.parse(answer.text) as { task_id: string };
  await expect
    .poll(
      async () =>
        (JSON.parse((await fetchRaw(gateway, `/v1/videos/${id}`)).text) as { status: string }).status,
    )
    .toBe('completed');
  const content = await fetchRaw(gateway, `/v1/videos/${id}/content`);
  expect([content.status, content.headers['content-type']]).toEqual([200, 'application/octet-stream']);
});

test('a provider cannot lead the gateway into its own network', async () => {
  const strict = await startGateway(config('proxy', []));
  try {
    const id = await made(strict, 'viduq2');
    const before = fileHeaders.length;
    const answer = await fetchRaw(strict, `/v1/videos/${id}/content`);
    expect(answer.status).toBe(502);
    expect(answer.text).not.toMatch(/127\.0\.0\.1|file\.mp4/);
    expect(fileHeaders).toHaveLength(before);
  } finally {
    await strict.close();
  }
});

test('clients are sent to the provider where the operator wants that', async () => {
  const redirecting = await startGateway(config('redirect', []));
  try {
    const id = await made(redirecting, 'viduq2');
    const answer = await fetchRaw(redirecting, `/v1/videos/${id}/content`);
    expect([answer.status, answer.headers.location, answer.text]).toEqual([
      302,
      `${upstream.url}/file.mp4`,
      '',
    ]);
    const guarded = await made(redirecting, 'sora-2');
    expect((await hashed(redirecting, `/v1/videos/${guarded}/content`)).hash).toBe(wholeHash);
  } finally {
    await redirecting.close();
  }
});

test('eight downloads of 25 MB at once take next to no memory', async () => {
  const process = await startProcess(`
    fetch: { allow: ['127.0.0.1'] },
    plugins: [(await import('${root}plugins/video-tasks/index.ts')).default({ poll: { first: 50, most: 50 }, fresh: 0 })],
    channels: [
      (await import('${root}channels/sora.ts')).default({ key: 'sora-key', baseUrl: '${upstream.url}/v1', models: ['sora-2'] }),
      (await import('${root}channels/vidu.ts')).default({ key: 'vidu-key', baseUrl: '${upstream.url}/ent/v2', models: ['viduq2'] }),
    ],
  `);
  try {
    const ids = await Promise.all(models.map((model) => made(process, model)));
    const eight = <T>(download: (path: string) => Promise<T>): Promise<T[]> =>
      Promise.all(
        Array.from({ length: 8 }, (_, index) => download(`/v1/videos/${ids[index % 2] ?? ''}/content`)),
      );
    // What any traffic makes a process take once: room for what is read and not yet collected, whose size is that of the engine's patience.
    await eight((path) => hashed(process, path, 'bytes=0-8388607'));
    const before = process.memory();
    let most = before;
    const watching = setInterval(() => (most = Math.max(most, process.memory())), 50);
    try {
      const files = await eight((path) => hashed(process, path));
      for (const file of files) expect(file).toEqual({ hash: wholeHash, length: whole });
    } finally {
      clearInterval(watching);
    }
    const growth = (most - before) / 1024 / 1024;
    console.log(`8 downloads of 25 MiB at once: RSS ${growth.toFixed(1)} MiB more`);
    // What is held is a few hundred KiB for each; held whole they would be 200 MiB. The rest is what the engine has not collected yet, which on a
    // busy machine may be 110 MiB.
    expect(growth).toBeLessThan(150);
  } finally {
    await process.end();
  }
});
