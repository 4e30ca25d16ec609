import { describe, expect, test } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import type { ListedModel } from '../../core/model/event.ts';
import type { Catalog } from '../../core/routing/catalog.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import modelAccess from '../../plugins/model-access.ts';
import { all, answering, handlerOf, testCall, testTools, type CallOptions } from './_call.ts';

const tools = testTools({ catalog: { channels: [] } as unknown as Catalog }).tools;

function keyFor(models: readonly string[] | undefined): ApiKey {
  return { id: 'key_1', name: 'test', models } as unknown as ApiKey;
}

async function ask(models: readonly string[] | undefined, options: CallOptions, inForce?: string) {
  const { call } = testCall(options);
  call.set(caller, keyFor(models));
  const next = answering({ type: 'head', id: '1', model: 'x' });
  const handler = await handlerOf(modelAccess, tools);
  await handler(inForce === undefined ? call : call.with({ model: inForce }), next);
  return next.calls.length;
}

describe('a key that names models', () => {
  test('may use those, by name and by pattern', async () => {
    expect(await ask(['small'], { model: 'small' })).toBe(1);
    expect(await ask(['small', 'claude-*'], { model: 'claude-opus-5' })).toBe(1);
  });

  test('is refused every other model with 403, naming the field', async () => {
    await expect(ask(['small'], { model: 'large' })).rejects.toMatchObject({
      code: 'model_not_allowed',
      status: 403,
      param: 'model',
      message: 'This API key has no access to the model large.',
    });
    await expect(ask([], { model: 'small' })).rejects.toMatchObject({ code: 'model_not_allowed' });
  });

  test('may ask for its model under another name', async () => {
    expect(await ask(['x'], { model: 'x-high' }, 'x')).toBe(1);
    expect(await ask(['x-high'], { model: 'x-high' }, 'x')).toBe(1);
    await expect(ask(['y'], { model: 'x-high' }, 'x')).rejects.toMatchObject({ status: 403 });
  });

  test('sees no other model in a list', async () => {
    const models: ListedModel[] = ['a-1', 'a-2', 'b'].map((id) => ({ id, created: 0, ownedBy: 'system' }));
    const { call } = testCall({ operation: 'list-models' });
    call.set(caller, keyFor(['a-*']));
    const handler = await handlerOf(modelAccess, tools);
    const [event] = await all(await handler(call, answering({ type: 'models', models })));
    expect(event).toEqual({ type: 'models', models: models.slice(0, 2) });
  });
});

test('a key without a list may use everything, and its stream is not touched', async () => {
  expect(await ask(undefined, { model: 'large' })).toBe(1);
  const { call } = testCall({ model: 'large' });
  const handler = await handlerOf(modelAccess, tools);
  const events = await answering()(call);
  expect(await handler(call, async () => events)).toBe(events);
});
