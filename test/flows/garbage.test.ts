import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Pool } from 'undici';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { voices } from './_wire.ts';

const short = { messages: [{ role: 'user', content: 'hello' }] };
/** As agents send: most of it are texts that nobody reads. */
const long = {
  messages: Array.from({ length: 40 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `Line ${index}\n`.repeat(200),
  })),
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
};

/** Enough at a time that whatever holds the calls changes its shape now and then. */
const lanes = 32;
const callsPerLane = 18;

const here = (path: string): string =>
  JSON.stringify(fileURLToPath(new URL(`../../${path}`, import.meta.url)));
const sluice = here('core/sdk/index.ts');
const rateLimit = here('plugins/rate-limit/index.ts');

/** A route that collects garbage, of the young or of all, and tells how many bytes the old generation and all buffers hold. */
const plugins = `
  plugins: [
    (await import(${rateLimit})).default({ default: { requestsPerMinute: 1000000, concurrency: 1000 } }),
    (await import(${sluice})).definePlugin({
      name: 'collector',
      stage: 'observe',
      async setup(_options, { route }) {
        const { getHeapSpaceStatistics, setFlagsFromString } = await import('node:v8');
        const { runInNewContext } = await import('node:vm');
        setFlagsFromString('--expose-gc');
        const gc = runInNewContext('gc');
        route('GET', '/collect/:type', (ctx) => {
          gc({ type: ctx.params.type === 'minor' ? 'minor' : 'major' });
          const spaces = getHeapSpaceStatistics().filter(({ space_name }) => space_name === 'old_space');
          ctx.body = String(spaces[0].space_used_size + process.memoryUsage().arrayBuffers);
        });
        return (call, next) => next(call);
      },
    })(),
  ],
`;

let upstream: ScriptedUpstream;
let gateway: GatewayProcess;
let client: Pool;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const { whole, frames } = voices[request.url.includes('/chat/') ? 'chat-completions' : 'messages'];
    if (request.body.includes('"stream":true'))
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(frames(['some', ' words']).join(''));
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(whole('some words')));
  });
  gateway = await startProcess(`
    channels: [
      openai({ key: 'sk-1', baseUrl: '${upstream.url}/v1', models: ['gpt-*'] }),
      anthropic({ key: 'sk-2', baseUrl: '${upstream.url}/v1', models: ['claude-*'] }),
    ],
    ${plugins}
  `);
  client = new Pool(gateway.url, { connections: lanes + 1 });
});
afterAll(async () => {
  await client.close();
  await gateway.end();
  await upstream.close();
});

test.for([
  ['whole', 'gpt-1', false, short],
  ['streamed', 'gpt-1', true, short],
  ['whole, translated', 'claude-1', false, short],
  ['streamed, translated', 'claude-1', true, short],
  ['a long request', 'gpt-1', false, long],
  ['a long request, streamed', 'gpt-1', true, long],
  ['a long request, translated', 'claude-1', false, long],
  ['a long request, streamed and translated', 'claude-1', true, long],
] as const)('what a call needed is collected soon after its end: %s', async ([, model, stream, request]) => {
  const load = (): Promise<void> => loadWith(JSON.stringify({ model, stream, ...request }));
  await load();
  // What is in use moves to the old generation: garbage that hangs on it would live until the next full collection.
  await collected('major');
  const before = await collected('major');
  await load();
  // Buffers are given back while others are collected.
  await collected('minor');
  const kept = (await collected('minor')) - before;
  const brought = request === long ? Buffer.byteLength(JSON.stringify(long)) : 0;
  // Calls that are open while the young are collected twice are among the old before they end: some 2 KB of each of these.
  expect(kept / (lanes * callsPerLane)).toBeLessThan(5000 + brought / 2);
});

/** Calls in lanes, with small collections among them as they come by themselves. */
async function loadWith(sent: string): Promise<void> {
  let done = 0;
  const lane = async (): Promise<void> => {
    for (let count = 0; count < callsPerLane; count += 1) {
      const { statusCode, body } = await client.request({
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
        body: sent,
      });
      expect(statusCode).toBe(200);
      await body.dump();
      done += 1;
      if (done % 120 === 0) await collected('minor');
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Bytes that the gateway's old generation and all its buffers hold. */
async function collected(type: 'major' | 'minor'): Promise<number> {
  const { body } = await client.request({ method: 'GET', path: `/collect/${type}` });
  return Number(await body.text());
}
