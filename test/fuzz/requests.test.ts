/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { patience } from '../support/patience.ts';
import { Agent, request as send, type IncomingMessage } from 'node:http';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { worthwhile } from '../../core/json/outline/index.ts';
import { call, formatNames, readError, voices, type Answer, type FormatName } from '../flows/_wire.ts';
import { fixturesOf, requestOf } from '../support/fixtures.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { near, noise } from './_mutate.ts';
import { tries } from '../support/tries.ts';

const seed = 20_261_120;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  upstream = await startUpstream((request, response) => {
    upstream.requests.length = 0;
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    if (request.url.includes('count')) response.writeHead(200).end('{"input_tokens":1,"totalTokens":1}');
    else if (request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString()))
      response.writeHead(200).end(voice.frames(['a', 'b']).join(''));
    else response.writeHead(200).end(JSON.stringify(voice.whole('ab')));
    // Whatever the client wrote, what the provider gets is JSON.
    JSON.parse(request.body.toString());
  });
  gateway = await startGateway({
    // This provider answers in these formats alone, also where it is to search.
    channels: formatNames.map((name) =>
      voices[name].channel(upstream.url, { traits: { '*': { formats: [name] } } }),
    ),
    limits: { depth: 100, values: 100_000 },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  agent.destroy();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
});

const statuses = new Map<number, number>();
afterAll(() =>
  console.log(
    `fuzzed requests, seed ${seed}: ${[...statuses]
      .toSorted()
      .map(([status, count]) => `${count} × ${status}`)
      .join(', ')}`,
  ),
);

function post(path: string, body: Buffer | string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const all = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers };
    const request = send(new URL(path, gateway.url), {
      method: 'POST',
      headers: all,
      agent,
      timeout: patience.wait,
    });
    request.on('timeout', () => request.destroy(new Error('The gateway hangs.')));
    request.on('error', reject);
    request.on('response', (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes,
          text: bytes.toString(),
          ended: true,
        });
      });
    });
    request.end(body);
  });
}

/** A client’s garbage is the client’s fault: told in its own words, and no failure of the gateway or of a provider. */
function expectSane(format: FormatName, answer: Answer): void {
  statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  if (answer.status !== 200) {
    expect([400, 403, 404, 413, 415, 503], answer.text).toContain(answer.status);
    readError(format, answer);
  } else expect(answer.text, 'an error of the gateway inside the stream').not.toContain('internal_error');
  const failures = gateway.lines
    .filter(({ level }) => level === 'error' || level === 'fatal')
    .map((line) => JSON.stringify(line));
  gateway.lines.length = 0;
  expect(failures).toEqual([]);
  expect(crashes).toEqual([]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
}

const header = fc.record(
  {
    accept: fc.constantFrom('text/event-stream', 'application/json', '*/*', 'nonsense'),
    'anthropic-beta': fc.string({ unit: fc.constantFrom(...'abc-,=; 0123456789'), maxLength: 40 }),
    'anthropic-version': fc.constantFrom('2023-06-01', '2026-10-21'),
    'x-sluice-strict': fc.constantFrom('true', 'false', 'x'),
    'content-type': fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'application/json;charset=latin1',
    ),
    'openai-beta': fc.constantFrom('assistants=v2', ''),
    'x-client-request-id': fc.string({ unit: fc.constantFrom(...'abc{}"\' %$'), maxLength: 20 }),
  },
  { requiredKeys: [] },
);

const pathsOf: Record<FormatName, (model: string) => string[]> = {
  'chat-completions': () => ['/v1/chat/completions'],
  messages: () => ['/v1/messages', '/v1/messages', '/v1/messages/count_tokens'],
  'generate-content': (model) => [
    `/v1beta/models/${model}:generateContent`,
    `/v1beta/models/${model}:streamGenerateContent`,
    `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    `/v1/models/${model}:streamGenerateContent?alt=json`,
    `/v1beta/models/${model}:countTokens`,
  ],
};

const models = formatNames.map((name) => voices[name].model);

describe.each(formatNames)('%s', (format) => {
  const bodies = fixturesOf(format, 'requests', '.json').map((fixture) => requestOf(fixture).body);
  const route = fc
    .constantFrom(...models, `${models[0]}-high`)
    .chain((model) =>
      fc.record({ model: fc.constant(model), path: fc.constantFrom(...pathsOf[format](model)) }),
    );

  test('bodies near the real ones are answered, or refused with a reason', async () => {
    expect(bodies.length).toBeGreaterThan(10);
    const body = fc
      .constantFrom(...bodies)
      .chain((one) => fc.record({ text: near(one), stream: fc.boolean(), long: fc.boolean() }));
    await fc.assert(
      fc.asyncProperty(route, body, header, async ({ model, path }, { text, stream, long }, headers) => {
        const named =
          format === 'generate-content'
            ? text
            : text
                .replace(/^\{("model":"[^"]*",?)?/, () => `{"model":"${model}","stream":${stream},`)
                .replace(/,\}$/, '}');
        // A long body is checked by its outline.
        const sent = long ? ' '.repeat(worthwhile) + named : named;
        expectSane(format, await post(path, sent, { ...voices[format].headers, ...headers }));
      }),
      { seed, numRuns: tries(1500), endOnFailure: false },
    );
  });

  test('noise is refused with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(route, noise, header, async ({ path }, bytes, headers) => {
        const answer = await post(path, bytes, { ...voices[format].headers, ...headers });
        expectSane(format, answer);
        if (format !== 'generate-content') expect(answer.status).not.toBe(200);
      }),
      { seed, numRuns: tries(400) },
    );
  });

  test('and an ordinary call is still answered', async () => {
    expect((await call(gateway, format, voices[format].model, true)).status).toBe(200);
  });
});
