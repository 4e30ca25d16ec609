import { describe, expect, test } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import type { Channel } from '../../core/sdk/call.ts';
import { firstView } from '../../core/call/view.ts';
import type { ChatSettings } from '../../core/model/chat.ts';
import type { EmbedRequest } from '../../core/model/embed.ts';
import type { ListedModel } from '../../core/model/event.ts';
import { createCatalog } from '../../core/routing/catalog.ts';
import { matchesModel } from '../../core/state/api-keys.ts';
import { type ApiKey } from '../../core/sdk/api-key.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { all, answering, handlerOf, testCall, testTools } from './_call.ts';

type Options = NonNullable<Parameters<typeof modelAlias>[0]>;

function catalogOf(...models: string[]) {
  const channel = {
    id: 'one',
    models,
    priority: 0,
    weight: 1,
    keys: [{ id: '', index: 0 }],
    speaks: {},
    upstreamModel: (model: string) => (matchesModel(models, model) ? model : undefined),
    traits: () => ({}),
  };
  return createCatalog([channel as unknown as Channel], 1);
}

/** What goes on behind the plugin: the model in force, and what was added about reasoning. */
async function ask(model: string, models: string[], options: Options = {}, settings: ChatSettings = {}) {
  const { tools } = testTools({ catalog: catalogOf(...models) });
  const handler = await handlerOf(modelAlias, tools, options);
  const next = answering();
  await handler(testCall({ model, settings }).call, next);
  const [call] = next.calls;
  return { model: call?.model, asked: call?.askedModel, edits: call?.edits.settings?.reasoning };
}

describe('a suffix', () => {
  test('sets how hard the model thinks, and is taken off the name', async () => {
    for (const effort of ['low', 'medium', 'high']) {
      expect(await ask(`x-${effort}`, ['x'])).toEqual({
        model: 'x',
        asked: `x-${effort}`,
        edits: { effort },
      });
    }
    expect(await ask('x-thinking', ['x'])).toMatchObject({ model: 'x', edits: { mode: 'on', show: true } });
  });

  test('belongs to the name where a channel lists it so', async () => {
    expect(await ask('x-high', ['x', 'x-high'])).toMatchObject({ model: 'x-high', edits: undefined });
    expect(await ask('kimi-k2-thinking', ['kimi-k2-thinking', 'kimi-k2'])).toMatchObject({
      model: 'kimi-k2-thinking',
    });
  });

  test('belongs to the name where nothing reasons: what it wishes for would get lost', async () => {
    const { tools } = testTools({ catalog: catalogOf('x', 'y') });
    const handler = await handlerOf(modelAlias, tools, { aliases: { smart: 'y-high' } });
    const modelOf = async (model: string) => {
      const next = answering();
      const { exchange } = testCall({ operation: 'embed', model });
      exchange.decoded = { operation: 'embed', format: 'plain', model, input: [] } as unknown as EmbedRequest;
      await handler(firstView(exchange), next);
      return next.calls[0]?.model;
    };
    expect(await modelOf('x-high')).toBe('x-high');
    expect(await modelOf('x')).toBe('x');
    expect(await modelOf('smart')).toBe('y');
  });

  test('belongs to the name where nobody serves what is before it', async () => {
    expect(await ask('mistral-medium', ['mistral-*'])).toMatchObject({ model: 'mistral-medium' });
    expect(await ask('y-high', ['x'])).toMatchObject({ model: 'y-high', edits: undefined });
    expect(await ask('-high', ['*'])).toMatchObject({ model: '-high' });
  });

  test('is read where one pattern matches both names', async () => {
    expect(await ask('claude-opus-5-high', ['claude-*'])).toMatchObject({
      model: 'claude-opus-5',
      edits: { effort: 'high' },
    });
    expect(await ask('claude-opus-5-thinking', ['claude-opus-5', '*'])).toMatchObject({
      model: 'claude-opus-5',
    });
  });

  test('stays on published names that only look so', async () => {
    for (const model of [
      'moonshotai/kimi-k2-thinking',
      'qwen/qwen3-next-80b-a3b-thinking',
      'mistral-medium',
      'phi-3-medium',
    ]) {
      expect(await ask(model, ['*'])).toMatchObject({ model, edits: undefined });
    }
    expect(await ask('house-high', ['*'], { keep: ['house-*'] })).toMatchObject({ model: 'house-high' });
    expect(await ask('phi-3-medium', ['*'], { keep: [] })).toMatchObject({
      model: 'phi-3',
      edits: { effort: 'medium' },
    });
  });

  test('is one only: the rest is the name', async () => {
    expect(await ask('x-thinking-high', ['x'])).toMatchObject({ model: 'x-thinking-high', edits: undefined });
    expect(await ask('x-thinking-high', ['x', 'x-thinking'])).toMatchObject({
      model: 'x-thinking',
      edits: { effort: 'high' },
    });
  });

  test('is not read when suffixes are off', async () => {
    expect(await ask('x-high', ['x'], { suffixes: false })).toMatchObject({
      model: 'x-high',
      edits: undefined,
    });
  });
});

describe('more suffixes', () => {
  test('are part of the name unless they are asked for', async () => {
    for (const word of ['minimal', 'xhigh', 'max', 'none', 'nothinking']) {
      expect(await ask(`x-${word}`, ['x'])).toMatchObject({ model: `x-${word}`, edits: undefined });
    }
  });

  test('are read for every model, or for those that match', async () => {
    for (const effort of ['minimal', 'xhigh', 'max', 'none']) {
      expect(await ask(`x-${effort}`, ['x'], { extended: true })).toMatchObject({
        model: 'x',
        edits: { effort },
      });
    }
    expect(await ask('x-nothinking', ['x'], { extended: ['x*'] })).toMatchObject({
      model: 'x',
      edits: { mode: 'off' },
    });
    expect(await ask('y-nothinking', ['y'], { extended: ['x*'] })).toMatchObject({ model: 'y-nothinking' });
    expect(await ask('y-high', ['y'], { extended: ['x*'] })).toMatchObject({ model: 'y' });
  });
});

describe('what the request itself says about reasoning wins', () => {
  const edits = async (suffix: string, settings: ChatSettings) =>
    (await ask(`x-${suffix}`, ['x'], { extended: true }, settings)).edits;

  test('over how much', async () => {
    expect(await edits('high', { reasoning: { effort: 'low' } })).toBeUndefined();
    expect(await edits('high', { reasoning: { budget: 1024 } })).toBeUndefined();
    expect(await edits('high', { reasoning: { mode: 'off' } })).toBeUndefined();
    expect(await edits('nothinking', { reasoning: { effort: 'low' } })).toBeUndefined();
  });

  test('over whether, and whether to show it', async () => {
    expect(await edits('thinking', { reasoning: { mode: 'off' } })).toBeUndefined();
    expect(await edits('thinking', { reasoning: { effort: 'none' } })).toBeUndefined();
    expect(await edits('thinking', { reasoning: { budget: 0 } })).toBeUndefined();
    expect(await edits('thinking', { reasoning: { mode: 'adaptive', display: 'omitted' } })).toBeUndefined();
    expect(await edits('nothinking', { reasoning: { mode: 'adaptive' } })).toBeUndefined();
  });

  test('and is filled up with what it leaves open', async () => {
    expect(await edits('high', { reasoning: { mode: 'adaptive', display: 'omitted' } })).toEqual({
      mode: 'adaptive',
      display: 'omitted',
      effort: 'high',
    });
    expect(await edits('high', { reasoning: { show: true } })).toEqual({ show: true, effort: 'high' });
    expect(await edits('thinking', { reasoning: { effort: 'low' } })).toEqual({
      effort: 'low',
      mode: 'on',
      show: true,
    });
    expect(await edits('thinking', { reasoning: { show: false } })).toEqual({ show: false, mode: 'on' });
  });

  test('the name in force changes all the same', async () => {
    expect(await ask('x-high', ['x'], {}, { reasoning: { effort: 'low' } })).toMatchObject({
      model: 'x',
      asked: 'x-high',
    });
  });
});

describe('an alias', () => {
  test('is another name of a model', async () => {
    expect(await ask('fast', ['x'], { aliases: { fast: 'x' } })).toEqual({
      model: 'x',
      asked: 'fast',
      edits: undefined,
    });
    expect(await ask('x', ['x', 'y'], { aliases: { x: 'y' } })).toMatchObject({ model: 'y' });
    expect(await ask('b', ['x'], { aliases: { a: 'x', b: 'a' } })).toMatchObject({ model: 'x' });
  });

  test('may carry a suffix, or get one from the client, which wins', async () => {
    const aliases = { deep: 'x-high', plain: 'x' };
    expect(await ask('deep', ['x'], { aliases })).toMatchObject({ model: 'x', edits: { effort: 'high' } });
    expect(await ask('plain-low', ['x'], { aliases })).toMatchObject({
      model: 'x',
      edits: { effort: 'low' },
    });
    expect(await ask('deep-low', ['x'], { aliases })).toMatchObject({ model: 'x', edits: { effort: 'low' } });
  });

  test('in a circle ends', async () => {
    expect(await ask('a', ['x'], { aliases: { a: 'b', b: 'a' } })).toMatchObject({ asked: 'a' });
  });

  test('of a model that nobody serves is told to the operator', async () => {
    const { tools, lines } = testTools({ catalog: catalogOf('x') });
    await handlerOf(modelAlias, tools, { aliases: { fast: 'gone', good: 'x' } });
    expect(lines).toMatchObject([{ level: 'warn', alias: 'fast', model: 'gone' }]);
  });

  test('stands in the model lists of those who may use it', async () => {
    const lists = async (models: string[] | undefined) => {
      const catalog = catalogOf('x', 'claude-*');
      const handler = await handlerOf(modelAlias, testTools({ catalog }).tools, {
        aliases: { fast: 'x', opus: 'claude-opus-5', dead: 'gone' },
      });
      const { call } = testCall({ operation: 'list-models' });
      if (models !== undefined) call.set(caller, { models } as unknown as ApiKey);
      const shown: ListedModel[] = [...catalog.list()].filter(({ id }) => matchesModel(models, id));
      const [event] = await all(await handler(call, answering({ type: 'models', models: shown })));
      return event?.type === 'models' ? event.models.map(({ id }) => id) : undefined;
    };
    expect(await lists(undefined)).toEqual(['fast', 'opus', 'x']);
    expect(await lists(['x'])).toEqual(['fast', 'x']);
    expect(await lists(['fast'])).toEqual(['fast']);
    expect(await lists(['claude-*'])).toEqual(['opus']);
  });
});

test('an ordinary name goes on untouched, and the body is not decoded for it', async () => {
  const { tools } = testTools({ catalog: catalogOf('x', 'claude-*') });
  const handler = await handlerOf(modelAlias, tools);
  for (const model of ['x', 'claude-opus-5', 'unknown']) {
    const next = answering();
    const { call } = testCall({ model });
    Object.defineProperty(call, 'request', { get: () => expect.unreachable('decoded') });
    await handler(call, next);
    expect(next.calls).toEqual([call]);
  }
});

test('a misspelt option is an error', () => {
  expect(modelAlias.spec.options?.safeParse({ alias: {} }).success).toBe(false);
});
