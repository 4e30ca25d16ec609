import { definePlugin, type GatewayEvent, type ListedModel } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import { testPlugins, type CallOptions, type Outcome, type TestedPlugins } from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import modelAccess from '../../plugins/model-access.ts';
import { between } from './_between.ts';

/** Puts another model in the place of the one that was asked for, as an alias does. */
const renaming = definePlugin({
  name: 'renaming',
  stage: 'admit',
  before: ['model-access'],
  setup: () => async (call, next) => {
    const inForce = call.wire.headers['x-model'];
    return next(typeof inForce === 'string' ? call.with({ model: inForce }) : call);
  },
});

let tested: TestedPlugins;

beforeAll(async () => {
  tested = await testPlugins([renaming, modelAccess]);
});
afterAll(() => tested.close());

function callModel(models: readonly string[] | undefined, model: string, inForce?: string): Promise<Outcome> {
  return tested.run({
    model,
    key: models === undefined ? {} : { models },
    headers: inForce === undefined ? {} : { 'x-model': inForce },
  });
}

describe('a key that names models', () => {
  test('may use those, by name and by pattern', async () => {
    expect(await callModel(['small'], 'small')).toMatchObject({ status: 200, sent: [{ model: 'small' }] });
    expect(await callModel(['small', 'claude-*'], 'claude-opus-5')).toMatchObject({ status: 200 });
  });

  test('is refused every other model with 403, naming the field', async () => {
    expect(await callModel(['small'], 'large')).toMatchObject({
      status: 403,
      sent: [],
      error: {
        code: 'model_not_allowed',
        param: 'model',
        message: 'This API key has no access to the model large.',
      },
    });
    expect(await callModel([], 'small')).toMatchObject({ error: { code: 'model_not_allowed' } });
  });

  test('may ask for its model under another name', async () => {
    expect(await callModel(['x'], 'x-high', 'x')).toMatchObject({ status: 200, sent: [{ model: 'x' }] });
    expect(await callModel(['x-high'], 'x-high', 'x')).toMatchObject({ status: 200 });
    expect(await callModel(['y'], 'x-high', 'x')).toMatchObject({ status: 403 });
  });

  test('sees no other model in a list', async () => {
    const models: ListedModel[] = ['a-1', 'a-2', 'b'].map((id) => ({ id, created: 0, ownedBy: 'system' }));
    const options = { operation: 'list-models', key: { models: ['a-*'] } } as const;
    const { events } = await tested.run(options, { reply: [{ type: 'models', models }] });
    expect(events).toEqual([{ type: 'models', models: models.slice(0, 2) }]);
  });

  test('sees the other events of a list as they are', async () => {
    const reply: GatewayEvent[] = [
      { type: 'bytes', bytes: Buffer.from('{}') },
      { type: 'models', models: [] },
    ];
    const { events } = await tested.run({ operation: 'list-models', key: { models: ['a-*'] } }, { reply });
    expect(events).toEqual(reply);
  });

  test('may use what plugins answer, which concerns no model', async () => {
    const reply: GatewayEvent[] = [{ type: 'bytes', bytes: Buffer.from('{}') }];
    const { status, events } = await tested.run(
      { operation: 'state', key: { models: ['small'] } },
      { reply },
    );
    expect({ status, events }).toEqual({ status: 200, events: reply });
  });
});

test('a key without a list may use everything, and its stream is not touched', async () => {
  expect(await callModel(undefined, 'large')).toMatchObject({ status: 200 });
  const { plugins, passed } = between(modelAccess());
  const { run, close } = await testPlugins(plugins);
  onTestFinished(close);
  expect(await run({ model: 'large' })).toMatchObject({ status: 200 });
  expect(passed[0]?.got).toBeDefined();
  expect(passed[0]?.gave).toBe(passed[0]?.got);
});

describe('where the channel of a model chooses others by a field of the request', () => {
  const routed = { channel: { routingFields: new Set(['models']) } };
  const catalog = {
    channels: [routed.channel],
    candidates: () => [routed],
  } as unknown as InternalTools['catalog'];
  const body = {
    model: 'small',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'hi' }],
    models: ['large'],
  };

  async function send(key: CallOptions['key']): Promise<Outcome> {
    const { run, close } = await testPlugins([modelAccess], { tools: { catalog } });
    onTestFinished(close);
    return run({ format: 'chat-completions', body, ...(key === undefined ? {} : { key }) });
  }

  test.each<[string, NonNullable<CallOptions['key']>, string]>([
    ['names models', { models: ['small'] }, 'may use certain models alone'],
    [
      'has a budget in dollars',
      { budgets: [{ unit: 'micro-dollar', period: 'day', amount: 5 }] },
      'has a budget in dollars',
    ],
  ])('a key that %s is refused, and is told why', async (_what, key, why) => {
    expect(await send(key)).toMatchObject({
      status: 403,
      sent: [],
      error: { code: 'model_not_allowed', param: 'models', message: expect.stringContaining(why) },
    });
  });

  test('a key without either, and a call of nobody known, may send the field', async () => {
    expect(await send({ budgets: [{ unit: 'token', period: 'day', amount: 5 }] })).toMatchObject({
      status: 200,
    });
    expect(await send({})).toMatchObject({ status: 200 });
    expect(await send(undefined)).toMatchObject({ status: 200 });
  });
});
