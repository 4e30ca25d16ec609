import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import {
  call,
  framesOf,
  responseIn,
  startNative,
  streamed,
  textOf,
  runTurn,
  type Json,
  type NativeProvider,
} from '../../flows/_turns.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectionOf } from '../../support/sqlite.ts';

describe('what is kept of a reply', () => {
  let native: NativeProvider;
  let gateway: TestGateway;

  beforeAll(async () => {
    native = await startNative({}, (request, response) => {
      if (!request.body.includes('cut')) return false;
      const created = {
        type: 'response.created',
        response: { id: 'resp_cut', object: 'response', output: [] },
      };
      const word = { type: 'response.output_text.delta', item_id: 'm', output_index: 0, delta: 'Hi' };
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(
          `event: response.created\ndata: ${JSON.stringify(created)}\n\nevent: response.output_text.delta\ndata: ${JSON.stringify(word)}\n\n`,
          () => setTimeout(() => response.destroy(), 20),
        );
      return true;
    });
    gateway = await startGateway({
      channels: [demo(), demo({ id: 'slow', pace: 20, models: { slow: 'demo' } }), native.channel],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await native.close();
  });

  const rows = (): number =>
    Number(connectionOf(gateway.stores).prepare('SELECT COUNT(*) AS n FROM responses').get()?.n);

  test.each(['demo', 'native-1'])(
    'is there when a stream from %s says that it is complete',
    async (model) => {
      const before = rows();
      const response = await fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, input: 'Hello', stream: true }),
      });
      let text = '';
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk as Uint8Array).toString();
        if (text.includes('response.completed')) {
          expect(rows()).toBe(before + 1);
          break;
        }
      }
      const { id } = responseIn(framesOf(text)[0]);
      expect((await call(gateway, 'GET', `/v1/responses/${String(id)}`)).status).toBe(200);
    },
  );

  test('is nothing when the client leaves before the end', async () => {
    const before = rows();
    const leaving = new AbortController();
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'slow', input: 'a b c d e f g h i j', stream: true }),
    });
    await response.body?.getReader().read();
    leaving.abort();
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(rows()).toBe(before);
  });

  test('is nothing when it was refused', async () => {
    const before = rows();
    for (const stream of [false, true])
      await call(gateway, 'POST', '/v1/responses', { model: 'demo', input: '!status=429', stream });
    await call(gateway, 'POST', '/v1/responses', { model: 'demo', input: '!error-after=2' });
    expect(rows()).toBe(before);
  });

  test('is a failure when a stream that passes through is cut', async () => {
    await streamed(gateway, { model: 'native-1', input: 'cut' }).catch(() => {});
    const { body } = await call(gateway, 'GET', '/v1/responses/resp_cut');
    expect(body).toMatchObject({ id: 'resp_cut', status: 'failed', error: { code: 'server_error' } });
  });

  test('is every item with an id, the text of the input as parts', async () => {
    const { id } = await runTurn(gateway, { model: 'demo', input: 'Hello' });
    const { body } = await call(gateway, 'GET', `/v1/responses/${String(id)}/input_items`);
    expect(body.data).toEqual([
      {
        type: 'message',
        role: 'user',
        id: expect.stringMatching(/^msg_/),
        status: 'completed',
        content: [{ type: 'input_text', text: 'Hello' }],
      },
    ]);
  });

  test('names the model that the client asked for', async () => {
    const other = await startGateway({
      channels: [demo({ speaks: ['responses'], models: { mine: 'demo' } })],
    });
    try {
      for (const stream of [false, true]) {
        const shown = await runTurn(other, { model: 'mine', input: 'Hello' }, stream);
        expect(shown.model).toBe('mine');
        expect((await call(other, 'GET', `/v1/responses/${String(shown.id)}`)).body).toEqual(shown);
      }
    } finally {
      await other.close();
    }
  });
});

test('an answer reaches its client although it could not be kept, and the log says so', async () => {
  const gateway = await startGateway({ channels: [demo()] });
  try {
    connectionOf(gateway.stores).exec('DROP TABLE responses');
    for (const stream of [false, true]) {
      const response = await runTurn(gateway, { model: 'demo', input: 'Hello' }, stream);
      expect(textOf(response)).toBe('You said: Hello');
    }
    const lines = gateway.lines.filter(({ msg }: Json) => msg === 'a response could not be stored');
    expect(lines).toHaveLength(2);
  } finally {
    await gateway.close();
  }
});
