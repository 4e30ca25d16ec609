import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addReplyHeaders, definePlugin, GatewayError } from 'sluice';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { Bare, requestText } from './_socket.ts';
import { anyCharacter } from '../support/characters.ts';

const seed = 20_261_122;
const scriptHeader = 'x-test-script';

interface HeaderScript {
  readonly headers?: Readonly<Record<string, string>>;
  /** Refuses with these headers in its error, and this status. */
  readonly refuse?: { readonly headers: Readonly<Record<string, string>>; readonly status?: number };
}

/** Adds the headers that a test sends in a header of the request, as a plugin would that gets them from an outside source. */
const headerScripts = definePlugin({
  name: 'scripted-headers',
  stage: 'admit',
  setup: () =>
    async function scripted(call, next) {
      const text = call.wire.headers[scriptHeader];
      if (typeof text !== 'string') return next(call);
      const { headers, refuse } = JSON.parse(Buffer.from(text, 'base64url').toString()) as HeaderScript;
      if (headers !== undefined) addReplyHeaders(call, headers);
      if (refuse !== undefined) throw new GatewayError('forbidden', 'As scripted.', refuse);
      return next(call);
    },
});

let gateway: TestGateway;
let realtime: RealtimeUpstream;
/** A provider that sends one header as a test says, whatever it holds. */
let provider: Server;
let contentType = 'audio/mpeg';
/** Further headers, each with its end. */
let furtherHeaders = '';

beforeAll(async () => {
  realtime = await startRealtimeUpstream(() => {});
  provider = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () =>
      socket.end(
        `HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\ncontent-length: 3\r\n${furtherHeaders}connection: close\r\n\r\nabc`,
        'latin1',
      ),
    );
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  gateway = await startGateway({
    plugins: [headerScripts()],
    channels: [
      demo(),
      openai({ id: 'talk', key: 'k', baseUrl: realtime.url, models: ['talk'] }),
      openai({
        id: 'voice',
        key: 'k',
        baseUrl: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`,
        models: ['voice'],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await realtime.close();
  provider.close();
});

const common = (script: HeaderScript) => ({
  authorization: `Bearer ${gateway.key}`,
  [scriptHeader]: Buffer.from(JSON.stringify(script)).toString('base64url'),
});

/** The head of the answer, as it went over the wire. */
async function headOf(text: string): Promise<readonly string[]> {
  const bare = await Bare.to(gateway.url);
  try {
    bare.write(text);
    const answer = await bare.until(/\r\n\r\n/);
    return answer.slice(0, answer.indexOf('\r\n\r\n')).split('\r\n');
  } finally {
    bare.socket.destroy();
  }
}

const post = (path: string, body: object, script: HeaderScript): string => {
  const json = JSON.stringify(body);
  return requestText(
    'POST',
    path,
    {
      ...common(script),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(json)),
      connection: 'close',
    },
    json,
  );
};

const chat = (script: HeaderScript, stream: boolean) =>
  post(
    '/v1/chat/completions',
    { model: 'demo', stream, messages: [{ role: 'user', content: 'hi' }] },
    script,
  );

const session = (script: HeaderScript, path = '/v1/realtime?model=talk') =>
  requestText('GET', path, {
    ...common(script),
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  });

/** Every kind of answer, and the status that it has when nothing is wrong with its headers. */
const answers: readonly (readonly [string, string, (script: HeaderScript) => string])[] = [
  ['a whole reply', '200', (script) => chat(script, false)],
  ['a stream', '200', (script) => chat(script, true)],
  ['a model list', '200', (script) => requestText('GET', '/v1/models', common(script))],
  ['a refusal', '403', ({ headers = {} }) => chat({ refuse: { headers } }, false)],
  [
    'a refusal with headers of both kinds',
    '403',
    (script) => chat({ ...script, refuse: { headers: script.headers ?? {} } }, true),
  ],
  ['a session that is accepted', '101', (script) => session(script)],
  [
    'a session that is refused',
    '403',
    (script) => session({ ...script, refuse: { headers: script.headers ?? {} } }),
  ],
  [
    'a socket that is refused',
    '403',
    (script) => session({ ...script, refuse: { headers: script.headers ?? {} } }, '/v1/responses'),
  ],
];

describe.each(answers)('%s', (_kind, status, request) => {
  test('comes without the headers that no reply can carry, which the log names, and with the others', async () => {
    await gateway.forgetLines();
    const head = await headOf(
      request({
        headers: {
          'x-price': '5 €',
          'x-split': 'a\r\nx-injected: yes',
          'x nämé': 'value',
          '': 'nothing',
          'content-length': '1',
          'transfer-encoding': 'chunked',
          'x-good': 'stays',
        },
      }),
    );
    expect(head[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toContain('x-good: stays');
    expect(head.join('\n')).not.toMatch(/x-injected|x-price|x-split/i);
    const dropped = gateway.lines.flatMap(({ headers }) => (Array.isArray(headers) ? headers : []));
    expect(dropped).toEqual(expect.arrayContaining(['x-price', 'x-split', 'x nämé']));
    expect(JSON.stringify(gateway.lines)).not.toContain('5 €');
  });

  test('comes whatever a plugin adds', async () => {
    const text = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 20 }), fc.string({ maxLength: 20 }));
    const name = fc.oneof(
      text,
      fc.constantFrom('connection', 'Upgrade', 'Content-Length', 'sec-websocket-accept', 'x-a', '__proto__'),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, text, { maxKeys: 6 }), async (headers) => {
        const head = await headOf(request({ headers: { ...headers, 'x-last': 'here' } }));
        expect(head[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
        expect(head).toContain('x-last: here');
        for (const line of head.slice(1)) expect(line).toMatch(/^[\w!#$%&'*+.^`|~-]+: /);
      }),
      { seed, numRuns: 40 },
    );
  });
});

test('a status that does not exist is answered as 500', async () => {
  for (const status of [0, 99, 1000, 2.5]) {
    // oxlint-disable-next-line no-await-in-loop
    const head = await headOf(chat({ refuse: { headers: {}, status } }, false));
    expect(head[0]).toMatch(/^HTTP\/1.1 500 /);
  }
});

test('what a provider says of its bytes never breaks the answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({
        unit: fc
          .oneof(fc.integer({ min: 32, max: 126 }), fc.integer({ min: 128, max: 255 }))
          .map((code) => String.fromCharCode(code)),
        maxLength: 30,
      }),
      async (text) => {
        contentType = `audio/mpeg${text}`;
        const head = await headOf(
          post('/v1/audio/speech', { model: 'voice', input: 'hi', voice: 'alloy' }, {}),
        );
        expect(head[0]).toMatch(/^HTTP\/1.1 200 /);
      },
    ),
    { seed, numRuns: 60 },
  );
});

test('bytes in a compression that the gateway does not know pass as they are, and are called what they are', async () => {
  contentType = 'audio/mpeg';
  furtherHeaders = 'content-encoding: x-own\r\n';
  try {
    const head = await headOf(post('/v1/audio/speech', { model: 'voice', input: 'hi', voice: 'alloy' }, {}));
    expect(head.map((line) => line.toLowerCase())).toEqual(
      expect.arrayContaining(['content-encoding: x-own', 'content-length: 3']),
    );
  } finally {
    furtherHeaders = '';
  }
});

test('what a client calls its request never breaks the answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({
        unit: fc.integer({ min: 33, max: 255 }).map((code) => String.fromCharCode(code)),
        maxLength: 30,
      }),
      async (id) => {
        const head = await headOf(
          requestText('GET', '/v1/models', { ...common({}), 'x-request-id': id, 'x-client-request-id': id }),
        );
        expect(head[0]).toMatch(/^HTTP\/1.1 200 /);
      },
    ),
    { seed, numRuns: 40 },
  );
});
