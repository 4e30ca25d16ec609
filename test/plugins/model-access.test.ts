import { definePlugin, type ListedModel } from 'sluice';
import { testPlugins, type Outcome, type TestedPlugins } from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import modelAccess from '../../plugins/model-access.ts';
import { all, answering, handlerOf, testCall } from './_call.ts';

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

function ask(models: readonly string[] | undefined, model: string, inForce?: string): Promise<Outcome> {
  return tested.run({
    model,
    key: models === undefined ? {} : { models },
    headers: inForce === undefined ? {} : { 'x-model': inForce },
  });
}

describe('a key that names models', () => {
  test('may use those, by name and by pattern', async () => {
    expect(await ask(['small'], 'small')).toMatchObject({ status: 200, sent: [{ model: 'small' }] });
    expect(await ask(['small', 'claude-*'], 'claude-opus-5')).toMatchObject({ status: 200 });
  });

  test('is refused every other model with 403, naming the field', async () => {
    expect(await ask(['small'], 'large')).toMatchObject({
      status: 403,
      sent: [],
      error: {
        code: 'model_not_allowed',
        param: 'model',
        message: 'This API key has no access to the model large.',
      },
    });
    expect(await ask([], 'small')).toMatchObject({ error: { code: 'model_not_allowed' } });
  });

  test('may ask for its model under another name', async () => {
    expect(await ask(['x'], 'x-high', 'x')).toMatchObject({ status: 200, sent: [{ model: 'x' }] });
    expect(await ask(['x-high'], 'x-high', 'x')).toMatchObject({ status: 200 });
    expect(await ask(['y'], 'x-high', 'x')).toMatchObject({ status: 403 });
  });

  test('sees no other model in a list', async () => {
    const models: ListedModel[] = ['a-1', 'a-2', 'b'].map((id) => ({ id, created: 0, ownedBy: 'system' }));
    const { call } = testCall({ operation: 'list-models' });
    call.set(caller, { id: 'key_1', models: ['a-*'] } as unknown as ApiKey);
    const handler = await handlerOf(modelAccess, tested.tools);
    const [event] = await all(await handler(call, answering({ type: 'models', models })));
    expect(event).toEqual({ type: 'models', models: models.slice(0, 2) });
  });
});

test('a key without a list may use everything, and its stream is not touched', async () => {
  expect(await ask(undefined, 'large')).toMatchObject({ status: 200 });
  const { call } = testCall({ model: 'large' });
  const handler = await handlerOf(modelAccess, tested.tools);
  const events = await answering()(call);
  expect(await handler(call, async () => events)).toBe(events);
});
