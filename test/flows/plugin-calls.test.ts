import { setImmediate as nextTurn } from 'node:timers/promises';
import { map, of } from 'rxjs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import openaiChannel from '../../channels/openai.ts';
import demo from '../../channels/demo/index.ts';
import { caller, definePlugin, gathered, GatewayError, type GatewayEvent } from '../../core/sdk/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** Plugin with own routes, changed requests, own calls and a chosen channel. */
const inventive = definePlugin({
  name: 'inventive',
  stage: 'shape',
  setup(_options, tools) {
    tools.endpoint({
      method: 'GET',
      path: '/v1/things/:id',
      format: 'messages',
      streams: (query) => query.get('stream') === 'true',
      async handle(call, { id = '' }) {
        if (id === 'none') throw new GatewayError('not_found', 'There is no such thing.');
        if (call.stream) {
          const bytes = Buffer.from(`data: {"thing":"${id}"}\n\n`);
          return of<GatewayEvent[]>({ type: 'frames', format: 'messages', bytes });
        }
        return of<GatewayEvent[]>({ type: 'result', value: { id, owner: call.get(caller)?.name ?? null } });
      },
    });
    tools.endpoint({
      method: 'POST',
      path: '/v1/things',
      format: 'chat-completions',
      handle: async (call) => of<GatewayEvent[]>({ type: 'result', value: { got: call.body } }),
    });
    return async function invents(call, next) {
      switch (call.wire.headers['x-mode']) {
        case 'other body':
          return next(
            call.with({ body: { ...call.body, messages: [{ role: 'user', content: 'Other words' }] } }),
          );
        case 'first here': {
          const subcall = call.with({
            body: { model: call.model, messages: [{ role: 'user', content: 'one' }] },
            decoded: true,
          });
          const events = await gathered(call, await next(subcall));
          const words = events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
          return next(call.with({ body: { ...call.body, messages: [{ role: 'user', content: words }] } }));
        }
        case 'at b':
          return next(call.with({ affinity: { channel: 'b' } }));
        case 'only at c':
          return next(call.with({ affinity: { channel: 'c', only: true } }));
        case 'decoded':
          return (await next(call.with({ decoded: true }))).pipe(
            map((event) =>
              event.type === 'text-delta' ? { ...event, text: event.text.toUpperCase() } : event,
            ),
          );
        default:
          return next(call);
      }
    };
  },
});

let gateway: TestGateway;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
    );
  });
  gateway = await startGateway({
    plugins: [inventive()],
    channels: [
      openaiChannel({ id: 'seen', key: 'k', baseUrl: `${upstream.url}/v1`, models: { m: 'gpt-4.1' } }),
      demo({ id: 'a', models: { shared: 'demo' }, priority: 5 }),
      demo({ id: 'b', models: { shared: 'demo' } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(async () => {
  await gateway.forgetLines();
  upstream.requests.length = 0;
});

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const chat = (model: string, mode: string): Promise<Response> =>
  post(
    '/v1/chat/completions',
    { model, seed: 7, messages: [{ role: 'user', content: 'Hi' }] },
    { 'x-mode': mode },
  );
const textOf = async (response: Response): Promise<string> => {
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content ?? '';
};
/** The channel that the log names for the last call. */
const answeredBy = async (): Promise<unknown> => {
  await nextTurn();
  return gateway.lines.findLast((line) => 'channel' in line && 'status' in line)?.channel;
};

describe('a path of a plugin’s own that knows its caller', () => {
  const get = (path: string, key = gateway.key): Promise<Response> =>
    fetch(gateway.url + path, { headers: { authorization: `Bearer ${key}` } });

  test('answers whoever has a key, and nobody else', async () => {
    const response = await get('/v1/things/7');
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ id: '7', owner: 'test' });
    const refused = await get('/v1/things/7', 'sk-nobody');
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
  });

  test('refuses in its own format', async () => {
    const response = await get('/v1/things/none');
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
  });

  test('may answer with a stream', async () => {
    const response = await get('/v1/things/7?stream=true');
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(await response.text()).toBe('data: {"thing":"7"}\n\n');
  });

  test('reads a body, none, and refuses what is no JSON', async () => {
    expect(await (await post('/v1/things', { a: [1] })).json()).toEqual({ got: { a: [1] } });
    const none = await fetch(`${gateway.url}/v1/things`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    expect(await none.json()).toEqual({ got: {} });
    const broken = await post('/v1/things', '{"a":');
    expect(broken.status).toBe(400);
    expect(await broken.json()).toMatchObject({ error: { code: 'invalid_json' } });
  });

  test('is not there for another method', async () => {
    const response = await fetch(`${gateway.url}/v1/things/7`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    expect(response.status).toBe(405);
  });
});

describe('a plugin that changes the request', () => {
  test('as a whole: the provider gets the new body with the model’s name there', async () => {
    expect((await chat('m', 'other body')).status).toBe(200);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toEqual({
      model: 'gpt-4.1',
      seed: 7,
      messages: [{ role: 'user', content: 'Other words' }],
    });
  });

  test('after a call of its own, whose reply it reads', async () => {
    expect(await textOf(await chat('shared', 'first here'))).toBe('You said: You said: one');
  });

  test('wants events of a channel that speaks the client’s format', async () => {
    expect(await textOf(await chat('shared', 'decoded'))).toBe('YOU SAID: HI');
  });
});

describe('a plugin that says who shall answer', () => {
  test('gets its channel first', async () => {
    for (let count = 0; count < 3; count += 1) {
      await (await chat('shared', 'none')).text();
      expect(await answeredBy()).toBe('a');
      await (await chat('shared', 'at b')).text();
      expect(await answeredBy()).toBe('b');
    }
  });

  test('gets a 503 when it wants no other and that one does not serve the model', async () => {
    const response = await chat('shared', 'only at c');
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'no_available_channel' } });
  });
});
