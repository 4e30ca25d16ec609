/* oxlint-disable vitest/no-conditional-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import {
  call,
  fetchRaw,
  formatNames,
  read,
  voices,
  type Answer,
  type FormatName,
  type Voice,
} from './_wire.ts';

const keepAlive = 60;
const silence = (factor: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, keepAlive * factor));
const words = ['one', ' two', ' three'];

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let behaviour: (response: ServerResponse, voice: Voice) => void | Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((request, response) =>
    behaviour(
      response,
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ],
    ),
  );
  gateway = await startGateway({
    channels: formatNames.map((name) => voices[name].channel(upstream.url)),
    timeouts: { keepAlive, idle: 5000 },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Silent before the first byte, between frames, and inside a frame. */
const halting = async (response: ServerResponse, voice: Voice): Promise<void> => {
  await silence(4);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const frames = voice.frames(words);
  const middle = frames.length - voice.ending - 1;
  response.write(frames.slice(0, middle).join(''));
  await silence(4);
  const cut = frames[middle] ?? '';
  response.write(cut.slice(0, 40));
  await silence(4);
  response.write(cut.slice(40));
  response.end(frames.slice(-voice.ending).join(''));
};

/** Returns the keep-alive parts of a stream. */
function fillers(format: FormatName, answer: Answer): string[] {
  const blocks = answer.text.split(/(?<=\n\n)/);
  return blocks.filter((block) => {
    if (block.startsWith(':')) return true;
    const [frame] = parseSse(block);
    if (frame === undefined || format !== 'messages') return false;
    return (
      frame.event === 'ping' ||
      /"content_block_delta".*"(text|thinking|partial_json)":""\}\}$/.test(frame.data)
    );
  });
}

const pairs = formatNames.flatMap((client) => formatNames.map((channel) => [client, channel] as const));

describe.each(pairs)('%s client, %s channel', (client, channel) => {
  const { model } = voices[channel];
  const sendCall = (): Promise<Answer> =>
    call(
      gateway,
      client,
      model,
      true,
      client === 'chat-completions'
        ? { body: { ...voices[client].body(model, true), stream_options: { include_usage: true } } }
        : {},
    );

  test('silences are filled the way the format allows, only between events, also before the first', async () => {
    behaviour = halting;
    const answer = await sendCall();
    expect(read(client, true, answer)).toMatchObject({
      text: words.join(''),
      complete: true,
      error: undefined,
    });
    const filled = fillers(client, answer);
    if (client === 'generate-content') {
      expect(filled).toEqual([]);
      expect(answer.text).not.toMatch(/^:|\n:|\n\n\n/);
      return;
    }
    expect(filled.length).toBeGreaterThanOrEqual(3);
    if (client === 'messages') expect(answer.text).not.toMatch(/(^|\n):/);
    else expect(new Set(filled)).toEqual(new Set([': ping\n\n']));
    if (client === 'chat-completions') expect(answer.text.startsWith(': ping\n\n')).toBe(true);
    if (client === channel) {
      const rest = filled.reduce((text, filler) => text.replace(filler, ''), answer.text);
      expect(rest).toBe(voices[channel].frames(words).join(''));
    }
  });

  test('a provider that fails after the first keep-alive fails inside the stream', async () => {
    behaviour = async (response) => {
      await silence(4);
      response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"it broke"}}');
    };
    const answer = await sendCall();
    if (client === 'generate-content') {
      expect(answer.status).toBe(502);
      return;
    }
    expect(answer.status).toBe(200);
    const reply = read(client, true, answer);
    expect(reply.complete).toBe(false);
    expect(JSON.stringify(reply.error)).toContain('it broke');
  });

  test('a steady stream gets none', async () => {
    behaviour = async (response, voice) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of voice.frames(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])) {
        response.write(frame);
        await new Promise((resolve) => setTimeout(resolve, keepAlive / 8));
      }
      response.end();
    };
    // A machine that stands still for a moment makes a silence of its own.
    await eventually(async () => {
      const answer = await sendCall();
      expect(read(client, true, answer)).toMatchObject({ text: 'abcdefgh', complete: true });
      expect(fillers(client, answer)).toEqual([]);
    });
  });

  test('a whole reply stays one document, however long it takes', async () => {
    behaviour = async (response, voice) => {
      await silence(5);
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole('late')));
    };
    const answer = await call(gateway, client, model, false);
    expect(answer.text).toMatch(/^\{/);
    expect(read(client, false, answer)).toMatchObject({ text: 'late', complete: true });
  });
});

describe.each(formatNames)('generateContent in its other framings, %s channel', (channel) => {
  const { model } = voices[channel];
  const body = voices['generate-content'].body(model, true);

  test('lines of JSON are kept alive by empty lines', async () => {
    behaviour = halting;
    const answer = await fetchRaw(gateway, `/v1beta/models/${model}:streamGenerateContent`, { body });
    expect(answer.headers['content-type']).toBe('application/x-ndjson');
    expect(answer.text.startsWith('\n')).toBe(true);
    const lines = answer.text.split('\n');
    expect(lines.at(-1)).toBe('');
    const chunks = lines.filter((line) => line !== '').map((line) => ({ data: line }));
    expect(voices['generate-content'].readFrames(chunks)).toMatchObject({
      text: words.join(''),
      complete: true,
    });
    expect(lines.length - chunks.length).toBeGreaterThanOrEqual(4);
  });

  test('a JSON array stays one document', async () => {
    behaviour = halting;
    const answer = await fetchRaw(gateway, `/v1beta/models/${model}:streamGenerateContent?alt=json`, {
      body,
    });
    expect(answer.headers['content-type']).toBe('application/json');
    const chunks = (JSON.parse(answer.text) as unknown[]).map((chunk) => ({ data: JSON.stringify(chunk) }));
    expect(voices['generate-content'].readFrames(chunks)).toMatchObject({
      text: words.join(''),
      complete: true,
    });
  });
});
