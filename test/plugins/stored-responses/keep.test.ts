import { afterEach, describe, expect, test, vi } from 'vitest';
import { GatewayError, type GatewayEvent, type JsonObject, type Log } from 'sluice';
import type { Call } from 'sluice/internal';
import type { ResponseStore, StoredResponse } from '../../../core/state/responses/index.ts';
import { inClientsPlaces } from '../../../plugins/stored-responses/forward.ts';
import { retentionOf, TurnKeeper, turnOf } from '../../../plugins/stored-responses/keep.ts';
import { begunResponse, failureOf, Recorder } from '../../../plugins/stored-responses/record.ts';
import type { Resolved } from '../../../plugins/stored-responses/resolve.ts';
import { KeyedValues } from '../../../core/call/exchange.ts';
import { connection } from '../../../core/sdk/connection.ts';
import { itemsOnConnection } from '../../../plugins/stored-responses/connection-turns.ts';
import { withIds } from '../../../plugins/stored-responses/items.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';

const errors: unknown[] = [];
afterEach(() => void errors.splice(0));
const log = {
  error: (details: unknown, message: string) => errors.push([details, message]),
} as unknown as Log;

interface Kept {
  readonly call: Call;
  readonly keeper: TurnKeeper;
  readonly saved: StoredResponse[];
  readonly appended: unknown[];
}

/** A turn that is to be kept. */
async function keeping(
  body: JsonObject = {},
  resolved: Partial<Resolved> = {},
  store: Partial<ResponseStore> = {},
): Promise<Kept> {
  const made = await makeCall({
    format: 'responses',
    stream: body['stream'] === true,
    body: { model: 'm', input: 'Hello', ...body },
  });
  made.read();
  const saved: StoredResponse[] = [];
  const appended: unknown[] = [];
  const whole = {
    save: async (turn: StoredResponse) => void saved.push(turn),
    appendItems: async (...given: unknown[]) => void appended.push(given),
    ...store,
  } as unknown as ResponseStore;
  const all: Resolved = {
    history: [],
    input: () => [{ type: 'message', role: 'user', content: [] }],
    expanded: undefined,
    ...resolved,
  } as unknown as Resolved;
  const keeper = new TurnKeeper(made.call, all, { store: whole, retention: 60, log });
  return { call: made.call, keeper, saved, appended };
}

const bytes = (value: unknown): GatewayEvent => ({
  type: 'bytes',
  bytes: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
});
const frames = (...events: readonly JsonObject[]): GatewayEvent => ({
  type: 'frames',
  format: 'responses',
  bytes: Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')),
});
const response = { id: 'resp_1', object: 'response', status: 'completed', output: [] };

describe('a turn', () => {
  test('is kept with its time, its input and what the client referred to', async () => {
    const { call, keeper, saved } = await keeping(
      { previous_response_id: 'resp_0' },
      { previous: 'resp_0', history: [{ type: 'message', role: 'user' }] },
    );
    expect(keeper.see({ type: 'attempt', channel: 'a' } as GatewayEvent)).toBe('pass');
    expect(keeper.see(bytes(response))).toBe('late');
    await keeper.keep();
    expect(saved).toMatchObject([
      {
        id: 'resp_1',
        createdAt: call.created,
        expiresAt: call.created + 60,
        previous: 'resp_0',
        response: { ...response, previous_response_id: 'resp_0' },
      },
    ]);
    expect(saved[0]?.input).toHaveLength(1);
    expect(saved[0]).not.toHaveProperty('channel');
    expect(errors).toEqual([]);
  });

  test('names the channel only where its provider keeps it too', async () => {
    const { keeper, saved } = await keeping();
    keeper.see({ type: 'attempt', channel: 'failed', failure: 'upstream_cut' } as GatewayEvent);
    keeper.see({ type: 'attempt', channel: 'a' } as GatewayEvent);
    keeper.see(bytes({ ...response, store: true }));
    await keeper.keep();
    expect(saved[0]?.channel).toBe('a');
  });

  test('that goes on from turns nobody has kept is kept with them', async () => {
    const history = [{ type: 'message', role: 'user', content: 'before' }];
    const alone = await keeping({}, { history });
    const chained = await keeping({}, { history, previous: 'resp_0' });
    const grown = await keeping({}, { history, conversation: 'conv_1' });
    const inputs = [alone, chained, grown].map(
      ({ call }, at) =>
        turnOf(
          call,
          {
            history,
            input: () => [],
            ...[{}, { previous: 'resp_0' }, { conversation: 'conv_1' }][at],
          } as never,
          response,
          1,
        ).input.length,
    );
    expect(inputs).toEqual([1, 0, 0]);
  });

  test('is kept nowhere where the client wants that and no connection remembers it', async () => {
    const { call, keeper, saved } = await keeping({ store: false });
    expect(retentionOf(call)).toBe('nowhere');
    keeper.see(bytes(response));
    await keeper.keep();
    expect([saved, errors]).toEqual([[], []]);
    expect(retentionOf((await keeping({ store: null })).call)).toBe('stored');
  });

  test.each([
    ['completed', 1],
    ['incomplete', 1],
    ['failed', 0],
    ['cancelled', 0],
  ])('that is %s grows its conversation by %i', async (status, times) => {
    const output = [{ type: 'message', role: 'assistant' }, 'x', null];
    const { keeper, appended, saved } = await keeping({ conversation: 'conv_1' }, { conversation: 'conv_1' });
    keeper.see(bytes({ ...response, status, output }));
    await keeper.keep();
    expect(appended).toHaveLength(times);
    expect(saved[0]?.response['conversation']).toEqual({ id: 'conv_1' });
    if (times > 0) expect((appended[0] as unknown[][])[2]).toHaveLength(2);
  });

  test.each([
    ['without an id', bytes({ ...response, id: undefined }), 'The response has no id.'],
    ['that is no object', bytes('[1]'), 'The response has no response object.'],
    ['that is no JSON', bytes('{'), 'The response has no response object.'],
  ])('%s is not kept, and the log says why', async (_what, event, message) => {
    const { keeper, saved, call } = await keeping();
    keeper.see(event);
    await keeper.keep();
    expect(saved).toEqual([]);
    expect(errors).toEqual([
      [
        { id: call.id, error: expect.objectContaining({ message }) as Error },
        'a response could not be stored',
      ],
    ]);
  });

  test('that the store cannot take is told of in the log, and the client has its answer all the same', async () => {
    const save = (): Promise<never> => Promise.reject(new Error('disk full'));
    const { keeper } = await keeping({}, {}, { save });
    keeper.see(bytes(response));
    await expect(keeper.keep()).resolves.toBeUndefined();
    expect(errors).toHaveLength(1);
    expect(keeper.keep()).toBeUndefined();
    expect(keeper.see(bytes(response))).toBe('pass');
  });

  test('whose events cannot be encoded is not kept, and every later event passes', async () => {
    const { keeper, saved, call } = await keeping({ stream: true });
    const broken = { type: 'text-delta', block: 99 } as unknown as GatewayEvent;
    vi.spyOn(Recorder.prototype, 'see').mockImplementationOnce(() => {
      throw new Error('no such block');
    });
    expect(keeper.see(broken)).toBe('pass');
    expect(keeper.see(frames({ type: 'response.completed', response }))).toBe('pass');
    expect(keeper.keep()).toBeUndefined();
    expect(saved).toEqual([]);
    expect(errors).toMatchObject([[{ id: call.id }, 'a response could not be stored']]);
  });
});

describe('turns that only their connection remembers', () => {
  const begin = async (body: JsonObject, values = new KeyedValues()) => {
    const one = await keeping({ store: false, ...body });
    one.call.set(connection, values);
    return { ...one, values };
  };
  const finish = async ({ keeper }: Kept, id: string, status = 'completed') => {
    keeper.see(bytes({ ...response, id, status, output: [{ type: 'message', id: `of ${id}` }] }));
    await keeper.keep();
  };
  const known = (call: Call, id: string): readonly unknown[] | undefined =>
    itemsOnConnection(call, id)?.map((item) => item['id']);

  test('are kept with all before them, stay when another follows them, and are stored nowhere', async () => {
    const first = await begin({});
    expect(retentionOf(first.call)).toBe('connection');
    await finish(first, 'resp_1');
    const next = await begin({ previous_response_id: 'resp_1' }, first.values);
    await finish(next, 'resp_2');
    expect([known(next.call, 'resp_1'), known(next.call, 'resp_2')]).toEqual([
      [undefined, 'of resp_1'],
      [undefined, 'of resp_2'],
    ]);
    expect([first.saved, next.saved, known((await begin({})).call, 'resp_1')]).toEqual([[], [], undefined]);
  });

  test('are forgotten when what follows them fails or is cut short by its provider', async () => {
    for (const end of ['error', 'failed'] as const) {
      // oxlint-disable no-await-in-loop
      const first = await begin({});
      await finish(first, 'resp_1');
      const next = await begin({ previous_response_id: 'resp_1' }, first.values);
      if (end === 'error') await next.keeper.keep({ error: new Error('broken') });
      else await finish(next, 'resp_2', 'failed');
      // oxlint-enable no-await-in-loop
      expect([known(next.call, 'resp_1'), known(next.call, 'resp_2')]).toEqual([undefined, undefined]);
    }
  });

  test('are sixteen, and the oldest is forgotten first', async () => {
    const values = new KeyedValues();
    for (let count = 1; count <= 17; count += 1)
      // oxlint-disable-next-line no-await-in-loop
      await finish(await begin({}, values), `resp_${count}`);
    const { call } = await begin({}, values);
    expect(known(call, 'resp_1')).toBeUndefined();
    expect(known(call, 'resp_2')).toBeDefined();
    await finish(await begin({}, values), 'resp_2');
    await finish(await begin({}, values), 'resp_18');
    expect([known(call, 'resp_2') === undefined, known(call, 'resp_3')]).toEqual([false, undefined]);
  });
});

describe('an item that is kept', () => {
  test.each([
    ['message', 'msg'],
    ['reasoning', 'rs'],
    ['function_call', 'fc'],
    ['function_call_output', 'fco'],
    ['custom_tool_call', 'ctc'],
    ['custom_tool_call_output', 'ctco'],
    ['compaction', 'cmp'],
    ['web_search_call', 'ws'],
    ['file_search_call', 'fs'],
    ['code_interpreter_call', 'ci'],
    ['image_generation_call', 'ig'],
    ['computer_call', 'cu'],
    ['computer_call_output', 'cuo'],
    ['local_shell_call', 'lsh'],
    ['local_shell_call_output', 'lsho'],
    ['shell_call', 'sh'],
    ['shell_call_output', 'sho'],
    ['apply_patch_call', 'apc'],
    ['apply_patch_call_output', 'apco'],
    ['mcp_list_tools', 'mcpl'],
    ['mcp_call', 'mcp'],
    ['mcp_approval_request', 'mcpr'],
    ['mcp_approval_response', 'mcpa'],
    ['tool_search_call', 'tsc'],
    ['tool_search_output', 'tso'],
    ['something_new', 'item'],
    ['constructor', 'item'],
  ])('of type %s has an id that begins with %s_', (type, prefix) => {
    const [one] = withIds([{ type }]);
    expect(one?.['id']).toMatch(new RegExp(`^${prefix}_[0-9a-f]{48}$`));
    const [named] = withIds([{ type, id: 'mine', status: 'in_progress' }]);
    expect([named?.['id'], named?.['status']]).toEqual(['mine', 'in_progress']);
  });

  test.each([
    ['message', true],
    ['function_call', true],
    ['shell_call_output', true],
    ['tool_search_output', true],
    ['reasoning', false],
    ['mcp_list_tools', false],
    ['call', false],
    ['my_tool_search_output', false],
  ])('of type %s has a status: %s', (type, has) => {
    const [one] = withIds([{ type, id: '' }]);
    expect(one?.['status']).toBe(has ? 'completed' : undefined);
    expect(one?.['id']).not.toBe('');
  });
});

describe('a stream that passes through', () => {
  const created = { type: 'response.created', response: { ...response, status: 'in_progress' } };

  test('is kept as its last frame tells it, once', async () => {
    const { keeper, saved } = await keeping({ stream: true });
    expect(keeper.see(frames(created))).toBe('pass');
    expect(keeper.see({ type: 'usage', usage: {} } as GatewayEvent)).toBe('pass');
    expect(keeper.see(frames({ type: 'response.output_text.delta', delta: 'response.completed' }))).toBe(
      'pass',
    );
    expect(keeper.see(frames({ type: 'response.completed', response }))).toBe('keep');
    expect(keeper.see(frames({ type: 'response.completed', response: { ...response, id: 'other' } }))).toBe(
      'pass',
    );
    await keeper.keep();
    expect(saved.map(({ id }) => id)).toEqual(['resp_1']);
  });

  test('that breaks is kept as failed, under the id that the client has seen', async () => {
    const { keeper, saved } = await keeping({ stream: true });
    keeper.see(frames(created));
    await keeper.keep({ error: new GatewayError('upstream_cut', 'It broke off.') });
    expect(saved[0]?.response).toMatchObject({
      id: 'resp_1',
      status: 'failed',
      error: { code: 'server_error', message: 'It broke off.' },
    });
  });

  test('that breaks before the client has seen an id is not kept, nor is a whole reply', async () => {
    for (const stream of [true, false]) {
      // oxlint-disable-next-line no-await-in-loop
      const { keeper, saved } = await keeping({ stream });
      // oxlint-disable-next-line no-await-in-loop
      await keeper.keep({ error: new Error('broken') });
      expect(saved).toEqual([]);
    }
    expect(errors).toEqual([]);
  });

  test('of the gateway’s own words is kept as they are, and failed where it breaks', async () => {
    const { keeper, saved } = await keeping({ stream: true });
    keeper.see({ type: 'head', id: 'resp_9', model: 'm', created: 1 });
    keeper.see({ type: 'text-start', block: 0, choice: 0 } as unknown as GatewayEvent);
    await keeper.keep({ error: new GatewayError('rate_limit_exceeded', 'Later.') });
    expect(saved[0]?.response).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: 'Later.' },
    });
  });
});

test('a failure is told as responses tell theirs', () => {
  expect(failureOf(new GatewayError('rate_limit_exceeded', 'Later.'))).toEqual({
    code: 'rate_limit_exceeded',
    message: 'Later.',
  });
  expect(failureOf(new GatewayError('invalid_value', 'Wrong.'))).toEqual({
    code: 'invalid_prompt',
    message: 'Wrong.',
  });
  expect(failureOf(new GatewayError('upstream_cut', 'Cut.'))).toMatchObject({ code: 'server_error' });
  expect(failureOf(new Error('the secret'))['message']).not.toContain('secret');
});

test('a response begins with the id that the gateway gives, and a format without streams has none', async () => {
  const { call } = await keeping({ stream: true });
  expect(begunResponse(call)).toMatchObject({ id: expect.stringMatching(/^resp_/) as string, model: 'm' });
  const plain = { codec: {}, askedModel: 'm', created: 1 } as unknown as Call;
  expect(() => begunResponse(plain)).toThrow('The format has no streams.');
});

describe('the path of an error', () => {
  const history = [{ type: 'message' }, { type: 'message' }];
  const resolved = { history, input: () => [] } as unknown as Resolved;
  const at = (param: string, more: object = {}): GatewayError =>
    new GatewayError('invalid_value', `Wrong: ${param} and ${param}.`, { param, ...more });

  test.each([
    ['input[2].content', 'input[0].content'],
    ['input[12]', 'input[10]'],
    ['input[1].content', 'previous_response_id'],
    ['input', 'input'],
    ['model', 'model'],
    ['tools.input[5]', 'tools.input[5]'],
  ])('%s is %s in the client’s own body', (param, clientPath) => {
    const error = inClientsPlaces(at(param), resolved) as GatewayError;
    expect([error.param, error.message]).toEqual([clientPath, `Wrong: ${clientPath} and ${clientPath}.`]);
  });

  test('is the conversation where that names the earlier items', () => {
    const error = inClientsPlaces(at('input[0]'), { ...resolved, conversation: 'conv_1' } as Resolved);
    expect((error as GatewayError).param).toBe('conversation');
  });

  test('changes nothing else of it, and nothing of an error without one', () => {
    const error = at('input[3]', {
      status: 422,
      origin: 'upstream',
      retryable: true,
      retryAfter: 7,
      headers: { a: 'b' },
      details: { c: 1 },
    });
    const { code, status, origin, retryable, retryAfter, headers, details, cause } = inClientsPlaces(
      error,
      resolved,
    ) as GatewayError;
    expect({ code, status, origin, retryable, retryAfter, headers, details, cause }).toEqual({
      code: 'invalid_value',
      status: 422,
      origin: 'upstream',
      retryable: true,
      retryAfter: 7,
      headers: { a: 'b' },
      details: { c: 1 },
      cause: error,
    });
    for (const other of [new Error('x'), new GatewayError('invalid_value', 'x'), at('model')])
      expect(inClientsPlaces(other, resolved)).toBe(other);
    const bare = inClientsPlaces(at('input[3]'), resolved) as GatewayError;
    expect([bare.retryAfter, bare.details]).toEqual([at('x').retryAfter, at('x').details]);
  });
});
