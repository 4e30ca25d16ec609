/* oxlint-disable vitest/no-conditional-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { createHash, type Hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { once } from 'node:events';
import { request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { formatNames, voices, type FormatName } from './_wire.ts';

const MiB = 1024 * 1024;
/** Half as much again as may be read ahead or held, and what a provider packs into 0.3 MB. */
const size = 64 * MiB;
const packedSize = 100 * MiB;
const word = 'x'.repeat(1000);

let upstream: ScriptedUpstream;
let gateway: GatewayProcess;
/** Bytes that the latest stream has sent. */
let poured: { sent: number; readonly hash: Hash };

/** Streams at least `size` bytes as fast as the gateway takes them. */
async function pour(response: ServerResponse, frames: readonly string[], ending: number): Promise<void> {
  const beginning = frames.slice(0, frames.length - ending - 1).join('');
  const middle = Buffer.from((frames.at(-ending - 1) ?? '').repeat(60));
  const own = { sent: 0, hash: createHash('sha256') };
  poured = own;
  const write = async (bytes: Buffer | string): Promise<void> => {
    own.sent += Buffer.byteLength(bytes);
    own.hash.update(bytes);
    if (!response.write(bytes) && !response.destroyed) {
      await new Promise<void>((resolve) => {
        const go = (): void => {
          response.off('drain', go).off('close', go);
          resolve();
        };
        response.on('drain', go).on('close', go);
      });
    }
  };
  await write(beginning);
  while (own.sent < size && !response.destroyed) await write(middle);
  if (response.destroyed) return;
  await write(frames.slice(-ending).join(''));
  response.end();
}

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const asStream = request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString());
    const name: FormatName = request.url.includes('/chat/')
      ? 'chat-completions'
      : request.url.includes('/messages')
        ? 'messages'
        : 'generate-content';
    const voice = voices[name];
    if (asStream && request.url.includes('/packed/')) {
      // 100 MiB in 0.3 MB, sent at once: what it becomes must not be unpacked faster than it is read.
      const frames = voice.frames([word]);
      const middle = (frames.at(-voice.ending - 1) ?? '').repeat(Math.ceil(packedSize / 1200));
      const packed = gzipSync(
        frames.slice(0, -voice.ending - 1).join('') + middle + frames.slice(-voice.ending).join(''),
        { level: 1 },
      );
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
        .end(packed);
    } else if (asStream) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      void pour(response, voice.frames([word]), voice.ending);
    } else if (/big/.test(request.body.toString() + request.url)) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole(word.repeat(30_000))));
    } else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole('short')));
  });
  gateway = await startProcess(`
    timeouts: { stalled: 4000 },
    channels: [
      openai({ key: 'k', baseUrl: '${upstream.url}/v1', models: ['via-chat', 'big-chat'] }),
      openai({ key: 'k', id: 'packed', baseUrl: '${upstream.url}/packed/v1', models: ['packed-chat'] }),
      anthropic({ key: 'k', baseUrl: '${upstream.url}/v1', models: ['via-messages', 'big-messages'] }),
      gemini({ key: 'k', baseUrl: '${upstream.url}/v1beta', models: ['via-content', 'big-content'] }),
    ]`);
  // What only the first calls cost is not the reader's fault.
  for (const client of formatNames) {
    for (const channel of formatNames) {
      for (let count = 0; count < 20; count += 1) {
        const response = await open(client, voices[channel].model, false);
        response.resume();
        await once(response, 'end');
      }
    }
  }
});
afterAll(async () => {
  await gateway.end();
  await upstream.close();
});

async function open(client: FormatName, model: string, stream: boolean): Promise<IncomingMessage> {
  const voice = voices[client];
  const request = send(new URL(voice.path(model, stream), gateway.url), {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...voice.headers },
  });
  request.on('error', () => {});
  // Asked for, so that the gateway does not ask on its own and take the usage frame out.
  const options = client === 'chat-completions' && stream ? { stream_options: { include_usage: true } } : {};
  request.end(JSON.stringify({ ...voice.body(model, stream), ...options }));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return response;
}

const closed = (response: IncomingMessage): Promise<void> =>
  new Promise((resolve) => response.once('close', resolve));
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('a reader that stops reading a reply of 64 MB', () => {
  const pairs = [
    ['chat-completions', 'chat-completions'],
    ['messages', 'messages'],
    ['generate-content', 'generate-content'],
    ['chat-completions', 'messages'],
    ['messages', 'chat-completions'],
  ] as const;

  test.each(pairs)(
    'costs the gateway little memory, and gets every byte when it goes on (%s client, %s channel)',
    async (client, channel) => {
      const before = gateway.memory();
      const response = await open(client, voices[channel].model, true);
      await once(response, 'readable');
      let stalledPeak = 0;
      for (let count = 0; count < 10; count += 1) {
        await pause(100);
        stalledPeak = Math.max(stalledPeak, gateway.memory());
      }
      const heldUp = poured.sent;
      const hash = createHash('sha256');
      let got = 0;
      let text = 0;
      let tail = '';
      let flowPeak = 0;
      response.on('data', (chunk: Buffer) => {
        got += chunk.length;
        if (client === channel) hash.update(chunk);
        else {
          const seen = tail + chunk.toString('latin1');
          text += seen.split(word).length - 1;
          tail = seen.slice(-2000).split(word).at(-1) ?? '';
        }
      });
      const watch = setInterval(() => {
        flowPeak = Math.max(flowPeak, gateway.memory());
      }, 100);
      const startedAt = performance.now();
      await once(response, 'end');
      clearInterval(watch);
      const grown = (stalledPeak - before) / MiB;
      console.log(
        `${client} from ${channel}: stalled 1 s after ${(heldUp / MiB).toFixed(1)} MiB read ahead, RSS +${grown.toFixed(1)} MiB; ` +
          `${(got / MiB).toFixed(0)} MiB in ${((performance.now() - startedAt) / 1000).toFixed(1)} s, peak +${((flowPeak - before) / MiB).toFixed(1)} MiB`,
      );
      expect(heldUp).toBeLessThan(40 * MiB);
      expect(grown).toBeLessThan(40);
      if (client === channel) {
        expect(got).toBe(poured.sent);
        expect(hash.digest('hex')).toBe(poured.hash.digest('hex'));
      } else {
        const frame = voices[channel].frames([word]).at(-voices[channel].ending - 1) ?? '';
        const rest = voices[channel].frames([word]).join('').length - frame.length;
        expect(text).toBe((poured.sent - rest) / frame.length);
      }
    },
  );
});

test.each(['chat-completions', 'messages'] as const)(
  'a reader that stops does not fill the memory with what the provider packed (%s client)',
  async (client) => {
    const before = gateway.memory();
    const response = await open(client, 'packed-chat', true);
    await once(response, 'readable');
    let stalledPeak = 0;
    for (let count = 0; count < 10; count += 1) {
      await pause(100);
      stalledPeak = Math.max(stalledPeak, gateway.memory());
    }
    let got = 0;
    response.on('data', (chunk: Buffer) => {
      got += chunk.length;
    });
    await once(response, 'end');
    const grown = (stalledPeak - before) / MiB;
    console.log(
      `${client} from a packed stream: stalled 1 s, RSS +${grown.toFixed(1)} MiB; then ${(got / MiB).toFixed(0)} MiB`,
    );
    expect(grown).toBeLessThan(60);
    expect(got).toBeGreaterThan(0.75 * packedSize);
  },
);

describe('a reader that stalls for longer than the limit', () => {
  test.concurrent.each(['chat-completions', 'messages'] as const)(
    'is dropped, and the provider let go (%s channel)',
    async (channel) => {
      const response = await open('chat-completions', voices[channel].model, true);
      await once(response, 'readable');
      const startedAt = performance.now();
      await upstream.requests.findLast(({ body }) => body.includes(`"${voices[channel].model}"`))?.closed;
      console.log(
        `a stalled reader of a stream was dropped after ${((performance.now() - startedAt) / 1000).toFixed(1)} s (limit 4 s)`,
      );
      response.resume();
      await closed(response);
      expect(response.complete).toBe(false);
    },
  );

  test.concurrent.each([
    ['chat-completions', 'big-chat'],
    ['chat-completions', 'big-messages'],
  ] as const)(
    'is dropped too when the provider has long finished (%s client, model %s)',
    async (client, model) => {
      const response = await open(client, model, false);
      await once(response, 'readable');
      const { socket } = response;
      // Twice the limit and more, in which the gateway has been at work again and again.
      for (let count = 0; count < 18; count += 1) {
        expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
        await pause(500);
      }
      // Whatever stands in the kernel's buffers is read; then the connection must turn out to be gone.
      let got = 0;
      response.on('data', (chunk: Buffer) => {
        got += chunk.length;
      });
      await closed(response);
      expect(response.complete, `all ${got} bytes came after twice the limit`).toBe(false);
      expect(socket.destroyed).toBe(true);
    },
  );
});
