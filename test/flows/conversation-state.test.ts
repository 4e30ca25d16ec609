import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import {
  call,
  callIn,
  inputOf,
  output,
  responseIn,
  startNative,
  streamed,
  textOf,
  runTurn,
  type Json,
  type NativeProvider,
} from './_turns.ts';

const formats = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;
const getWeather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

let native: NativeProvider;
let gateway: TestGateway;

beforeAll(async () => {
  native = await startNative();
  gateway = await startGateway({
    channels: [
      ...formats.map((format) =>
        demo({
          id: format,
          speaks: [format],
          models: { [`via-${format}`]: 'demo', [`thinks-${format}`]: 'demo-thinking' },
          strict: true,
        }),
      ),
      native.channel,
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await native.close();
});
beforeEach(() => {
  native.requests.length = 0;
});

const another = async (): Promise<{ url: string; key: string }> => {
  const { value } = await gateway.apiKeys.create({ name: 'another' });
  return { url: gateway.url, key: value };
};

/** Returns the request that the demo received; it repeats its request for `!request`. */
const seen = (response: Json): string => JSON.stringify(JSON.parse(textOf(response)));

describe.each(formats)('on a channel that speaks only %s', (format) => {
  const model = `via-${format}`;

  test.each([false, true])(
    'three turns by id alone, with a tool between them (streamed: %s)',
    async (stream) => {
      const first = await runTurn(
        gateway,
        { model, instructions: 'Be brief.', input: 'My name is Ada: call get_weather', tools: [getWeather] },
        stream,
      );
      const { call_id } = callIn(first);
      const second = await runTurn(
        gateway,
        {
          model,
          previous_response_id: first.id,
          input: [{ type: 'function_call_output', call_id, output: 'sunny' }],
          tools: [getWeather],
        },
        stream,
      );
      expect(textOf(second)).toContain('get_weather returned: sunny');
      expect(second.previous_response_id).toBe(first.id);
      const third = await runTurn(
        gateway,
        { model, previous_response_id: second.id, input: '!request' },
        stream,
      );
      const request = seen(third);
      for (const part of ['My name is Ada', 'get_weather', 'sunny', 'get_weather returned'])
        expect(request).toContain(part);
      // Instructions are for one turn only.
      expect(request).not.toContain('Be brief.');
      expect(new Set([first.id, second.id, third.id]).size).toBe(3);
    },
  );

  test.each([false, true])(
    'reasoning goes back sealed as it came, in a tool loop by id (streamed: %s)',
    async (stream) => {
      const thinks = `thinks-${format}`;
      const request = { model: thinks, tools: [getWeather], reasoning: { effort: 'high', summary: 'auto' } };
      const first = await runTurn(gateway, { ...request, input: 'call get_weather' }, stream);
      expect(new Set(output(first).map(({ type }) => type))).toEqual(new Set(['reasoning', 'function_call']));
      const input = [{ type: 'function_call_output', call_id: callIn(first).call_id, output: 'sunny' }];
      // The demo refuses reasoning that is missing or was changed.
      const second = await runTurn(gateway, { ...request, previous_response_id: first.id, input }, stream);
      expect(textOf(second)).toContain('get_weather returned: sunny');
      const third = await runTurn(
        gateway,
        { ...request, previous_response_id: second.id, input: 'Thanks' },
        stream,
      );
      expect(textOf(third)).toContain('Thanks');
    },
  );

  test.each([false, true])('what is kept equals what the client saw (streamed: %s)', async (stream) => {
    const shown = await runTurn(gateway, { model, input: 'Hello', metadata: { a: 'b' } }, stream);
    const kept = await call(gateway, 'GET', `/v1/responses/${String(shown.id)}`);
    expect(kept).toEqual({ status: 200, body: shown });
    expect(shown).toMatchObject({ status: 'completed', store: true });
  });

  test('a conversation grows with each turn', async () => {
    const { body: conversation } = await call(gateway, 'POST', '/v1/conversations', {
      items: [{ role: 'user', content: 'I live in Ulm.' }],
    });
    const first = await runTurn(gateway, { model, conversation: conversation.id, input: 'Hello' });
    expect(first.conversation).toEqual({ id: conversation.id });
    const second = await runTurn(
      gateway,
      { model, conversation: { id: conversation.id }, input: '!request' },
      true,
    );
    for (const part of ['I live in Ulm.', 'You said:', 'Hello']) expect(seen(second)).toContain(part);
    const { body: list } = await call(
      gateway,
      'GET',
      `/v1/conversations/${String(conversation.id)}/items?order=asc`,
    );
    const items = list.data as readonly Json[];
    expect(items.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user', 'assistant']);
    expect(items[2]).toEqual(output(first)[0]);
    expect(items[4]).toEqual(output(second)[0]);
    // A turn that follows by id knows what the conversation was at that time.
    const followed = await runTurn(gateway, { model, previous_response_id: first.id, input: '!request' });
    expect(seen(followed)).toContain('I live in Ulm.');
    expect(output(followed)).not.toHaveLength(0);
    expect(await itemsOf(String(conversation.id))).toHaveLength(5);
  });
});

const itemsOf = async (id: string): Promise<readonly Json[]> =>
  (await call(gateway, 'GET', `/v1/conversations/${id}/items?limit=100`)).body.data as readonly Json[];

const model = 'via-chat-completions';
const notFound = (id: string): Json => ({
  error: expect.objectContaining({
    message: `Previous response with id '${id}' not found.`,
    type: 'invalid_request_error',
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  }),
});

describe('an earlier response', () => {
  test('that is unknown and one of another key are the same 400', async () => {
    const { id } = await runTurn(gateway, { model, input: 'Mine' });
    const stranger = await another();
    const foreign = await call(stranger, 'POST', '/v1/responses', {
      model,
      previous_response_id: id,
      input: 'x',
    });
    expect(foreign).toEqual({ status: 400, body: notFound(String(id)) });
    const unknown = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: 'resp_unknown',
      input: 'x',
    });
    expect(unknown).toEqual({ status: 400, body: notFound('resp_unknown') });
    const streaming = await call(gateway, 'POST', '/v1/responses', {
      model,
      stream: true,
      previous_response_id: 'resp_unknown',
      input: 'x',
    });
    expect(streaming.status).toBe(400);
    const deleted = await runTurn(gateway, { model, input: 'gone' });
    await call(gateway, 'DELETE', `/v1/responses/${String(deleted.id)}`);
    const after = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: deleted.id,
      input: 'x',
    });
    expect(after.body).toEqual(notFound(String(deleted.id)));
  });

  test('made with store: false cannot be referred to or fetched', async () => {
    const { id, store } = await runTurn(gateway, { model, input: 'Forget me', store: false });
    expect(store).toBe(false);
    expect((await call(gateway, 'GET', `/v1/responses/${String(id)}`)).status).toBe(404);
    const next = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: id,
      input: 'x',
    });
    expect(next.body).toEqual(notFound(String(id)));
  });

  test('is followed by a turn with store: false, which leaves nothing', async () => {
    const first = await runTurn(gateway, { model, input: 'My name is Ada' });
    const second = await runTurn(gateway, {
      model,
      previous_response_id: first.id,
      input: '!request',
      store: false,
    });
    expect(seen(second)).toContain('My name is Ada');
    expect((await call(gateway, 'GET', `/v1/responses/${String(second.id)}`)).status).toBe(404);
  });

  test('may be followed by several turns at once, each a branch of its own', async () => {
    const root = await runTurn(gateway, { model, input: 'The root' });
    const branches = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        runTurn(
          gateway,
          { model, previous_response_id: root.id, input: `Branch ${index}.` },
          index % 2 === 0,
        ),
      ),
    );
    expect(new Set(branches.map(({ id }) => id)).size).toBe(8);
    const tips = await Promise.all(
      branches.map(({ id }) => runTurn(gateway, { model, previous_response_id: id, input: '!request' })),
    );
    for (const [index, tip] of tips.entries()) {
      const request = seen(tip);
      expect(request).toContain('The root');
      expect([...request.matchAll(/Branch (\d)/g)].every(([, at]) => Number(at) === index)).toBe(true);
      expect(request).toContain(`Branch ${index}.`);
    }
  });

  test('that was cut short by its limit can be followed', async () => {
    const first = await runTurn(gateway, {
      model,
      input: 'one two three four five six',
      max_output_tokens: 2,
    });
    expect(first.status).toBe('incomplete');
    const second = await runTurn(gateway, { model, previous_response_id: first.id, input: '!request' });
    expect(seen(second)).toContain('one two three');
  });

  test('whose stream broke is kept as failed, and nothing follows it', async () => {
    const frames = await streamed(gateway, { model, input: '!error-after=3' });
    const last = frames.at(-1);
    expect(last).toMatchObject({ type: 'response.failed', response: { status: 'failed' } });
    const { id } = responseIn(last);
    const { body } = await call(gateway, 'GET', `/v1/responses/${String(id)}`);
    expect(body).toEqual(last?.response);
    const next = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: id,
      input: 'x',
    });
    expect(next.body).toEqual(notFound(String(id)));
  });

  test('and a conversation exclude each other', async () => {
    const { id } = await runTurn(gateway, { model, input: 'x' });
    const { body: conversation } = await call(gateway, 'POST', '/v1/conversations', {});
    const both = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: id,
      conversation: conversation.id,
      input: 'x',
    });
    expect(both.status).toBe(400);
  });

  test('has its count taken with it', async () => {
    const first = await runTurn(gateway, { model, input: 'word '.repeat(200) });
    const path = '/v1/responses/input_tokens';
    const alone = await call(gateway, 'POST', path, { model, input: 'x' });
    const together = await call(gateway, 'POST', path, { model, input: 'x', previous_response_id: first.id });
    expect(alone.status).toBe(200);
    expect(Number(together.body.input_tokens)).toBeGreaterThan(Number(alone.body.input_tokens) + 200);
  });

  test("has the client's own places named in what is wrong with the next request", async () => {
    const first = await runTurn(gateway, { model, input: 'Hello' });
    const orphan = await call(gateway, 'POST', '/v1/responses', {
      model,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: 'call_nowhere', output: 'x' }],
    });
    expect(orphan.status).toBe(400);
    expect(orphan.body.error).toMatchObject({ param: 'input[0].call_id' });
  });

  test('cannot be prepared over plain HTTP', async () => {
    const refused = await call(gateway, 'POST', '/v1/responses', { model, input: 'x', generate: false });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toMatchObject({ param: 'generate' });
    expect(textOf(await runTurn(gateway, { model, input: 'Hello', generate: true }))).toBe('You said: Hello');
  });
});

describe('a conversation', () => {
  test('that is unknown, foreign or deleted is a 404', async () => {
    const { body: conversation } = await call(gateway, 'POST', '/v1/conversations', {});
    const stranger = await another();
    const foreign = await call(stranger, 'POST', '/v1/responses', {
      model,
      conversation: conversation.id,
      input: 'x',
    });
    const unknown = await call(gateway, 'POST', '/v1/responses', {
      model,
      conversation: 'conv_x',
      input: 'x',
    });
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect(unknown.body.error).toMatchObject({ param: 'conversation' });
  });

  test('does not grow by a turn that fails', async () => {
    const { body } = await call(gateway, 'POST', '/v1/conversations', {});
    const failed = await call(gateway, 'POST', '/v1/responses', {
      model,
      conversation: body.id,
      input: '!status=400',
    });
    expect(failed.status).toBe(400);
    await streamed(gateway, { model, conversation: body.id, input: '!error-after=2' });
    expect(await itemsOf(String(body.id))).toEqual([]);
  });

  test('grows by turns that are not stored', async () => {
    const { body } = await call(gateway, 'POST', '/v1/conversations', {});
    await runTurn(gateway, { model, conversation: body.id, input: 'Hello', store: false });
    expect(await itemsOf(String(body.id))).toHaveLength(2);
  });
});

describe('a reference to an item', () => {
  test('stands for the item, with or without its type', async () => {
    const first = await runTurn(gateway, { model, input: 'My name is Ada' });
    const id = output(first)[0]?.id;
    for (const reference of [{ type: 'item_reference', id }, { id }, { type: null, id }]) {
      const second = await runTurn(gateway, {
        model,
        input: [reference, { role: 'user', content: '!request' }],
      });
      expect(seen(second)).toContain('You said: My name is Ada');
    }
  });

  test('to nothing, or to an item of another key, is a 404 that names its place', async () => {
    const { output: items } = await runTurn(gateway, { model, input: 'Mine' });
    const id = (items as readonly Json[])[0]?.id;
    const input = [
      { role: 'user', content: 'x' },
      { type: 'item_reference', id },
    ];
    const foreign = await call(await another(), 'POST', '/v1/responses', { model, input });
    expect(foreign.status).toBe(404);
    expect(foreign.body.error).toMatchObject({
      param: 'input[1].id',
      message: `Item with id '${String(id)}' not found.`,
    });
  });
});

describe('a provider that keeps responses itself', () => {
  const at = 'native-1';

  test.each([false, true])(
    'gets the id and nothing else, under the ids it gave (streamed: %s)',
    async (stream) => {
      const first = await runTurn(gateway, { model: at, input: 'Hello' }, stream);
      expect(first.id).toMatch(/^resp_native/);
      const second = await runTurn(
        gateway,
        { model: at, previous_response_id: first.id, input: 'Again' },
        stream,
      );
      expect(native.bodies().at(-1)).toEqual({
        model: at,
        previous_response_id: first.id,
        input: 'Again',
        ...(stream ? { stream: true } : {}),
      });
      const kept = await call(gateway, 'GET', `/v1/responses/${String(second.id)}`);
      expect(kept.body).toEqual(second);
    },
  );

  test('gets everything written out when it has forgotten', async () => {
    const first = await runTurn(gateway, { model: at, input: 'My name is Ada' });
    native.forget();
    const second = await runTurn(
      gateway,
      { model: at, previous_response_id: first.id, input: 'Again' },
      true,
    );
    expect(native.requests).toHaveLength(3);
    const [, tried, body] = native.bodies();
    expect(tried).toHaveProperty('previous_response_id', first.id);
    expect(body).not.toHaveProperty('previous_response_id');
    expect(JSON.stringify(body?.input)).toContain('My name is Ada');
    expect(inputOf(body)[1]).toEqual(output(first)[0]);
    expect(textOf(second)).toBe('native 3');
    // And from then on by id again.
    await runTurn(gateway, { model: at, previous_response_id: second.id, input: 'Once more' });
    expect(native.bodies().at(-1)).toHaveProperty('previous_response_id', second.id);
  });

  test('never sees an id that is not the caller’s', async () => {
    const first = await runTurn(gateway, { model: at, input: 'Mine' });
    const count = native.requests.length;
    const refused = await call(await another(), 'POST', '/v1/responses', {
      model: at,
      previous_response_id: first.id,
      input: 'x',
    });
    expect(refused.body).toEqual(notFound(String(first.id)));
    expect(native.requests).toHaveLength(count);
  });

  test('is left for another in the middle, and returned to', async () => {
    const first = await runTurn(gateway, { model: at, input: 'My name is Ada' });
    const second = await runTurn(gateway, { model, previous_response_id: first.id, input: '!request' });
    expect(seen(second)).toContain('My name is Ada');
    await runTurn(gateway, { model: at, previous_response_id: second.id, input: 'Back' });
    const body = native.bodies().at(-1);
    expect(body).not.toHaveProperty('previous_response_id');
    expect(inputOf(body).length).toBe(5);
  });

  test('gets a conversation written out, and the client still sees its conversation', async () => {
    const { body: conversation } = await call(gateway, 'POST', '/v1/conversations', {});
    await runTurn(gateway, { model: at, conversation: conversation.id, input: 'One' });
    const second = await runTurn(gateway, { model: at, conversation: conversation.id, input: 'Two' }, true);
    expect(second.conversation).toEqual({ id: conversation.id });
    const body = native.bodies().at(-1);
    expect(body).not.toHaveProperty('conversation');
    expect(inputOf(body).length).toBe(3);
    expect(await itemsOf(String(conversation.id))).toHaveLength(4);
  });
});

test('a provider that keeps nothing is never asked by id', async () => {
  const forgetful = await startNative({ keeps: false });
  const ownGateway = await startGateway({ channels: [forgetful.channel] });
  try {
    const first = await runTurn(ownGateway, { model: 'native-1', input: 'My name is Ada' });
    await runTurn(ownGateway, { model: 'native-1', previous_response_id: first.id, input: 'Again' });
    expect(forgetful.requests).toHaveLength(2);
    expect(JSON.stringify(forgetful.bodies()[1])).toContain('My name is Ada');
  } finally {
    await ownGateway.close();
    await forgetful.close();
  }
});

test('reasoning that the next provider cannot look up is left out, and reported', async () => {
  const strict = await startNative({}, (request, response) => {
    const { input } = JSON.parse(request.body.toString()) as Json;
    const unknown = (Array.isArray(input) ? (input as readonly Json[]) : []).find(
      ({ type, encrypted_content: sealed }) => type === 'reasoning' && sealed === undefined,
    );
    if (unknown === undefined) return false;
    const message = `Item with id '${String(unknown.id)}' not found. Items are not persisted when \`store\` is set to false.`;
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'input', code: null } }));
    return true;
  });
  const ownGateway = await startGateway({
    channels: [demo({ speaks: ['chat-completions'], models: { thinks: 'demo-thinking' } }), strict.channel],
  });
  try {
    const first = await runTurn(ownGateway, { model: 'thinks', input: 'My name is Ada' });
    expect(output(first).map(({ type }) => type)).toEqual(['reasoning', 'message']);
    const response = await fetch(`${ownGateway.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ownGateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'native-1', previous_response_id: first.id, input: 'Again' }),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-sluice-loss')).toContain('previous_response_id');
    expect(inputOf(strict.bodies().at(-1)).map(({ type }) => type)).toEqual([
      'message',
      'message',
      'message',
    ]);
  } finally {
    await ownGateway.close();
    await strict.close();
  }
});
