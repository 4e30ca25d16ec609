import { definePlugin, type JsonObject } from 'sluice';
import { testPlugins, type CallOptions } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import modelAccess from '../../plugins/model-access.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { between } from './_between.ts';

type Options = NonNullable<Parameters<typeof modelAlias>[0]>;

/** Returns the call after the plugin, at a channel with these models. */
async function passedOn(call: CallOptions, models: readonly string[], options: Options = {}) {
  const { plugins, passed } = between(modelAlias(options));
  const tested = await testPlugins(plugins, { channels: { one: models } });
  onTestFinished(() => tested.close());
  await tested.run(call);
  return passed[0];
}

/** Returns the resulting model, and the added reasoning settings. */
async function resolve(model: string, models: string[], options: Options = {}, more: CallOptions = {}) {
  const { on } = (await passedOn({ model, ...more }, models, options)) ?? {};
  return { model: on?.model, requested: on?.askedModel, edits: on?.edits.settings?.reasoning };
}

describe('a suffix', () => {
  test('sets how hard the model thinks, and is taken off the name', async () => {
    for (const effort of ['low', 'medium', 'high']) {
      expect(await resolve(`x-${effort}`, ['x'])).toEqual({
        model: 'x',
        requested: `x-${effort}`,
        edits: { effort },
      });
    }
    expect(await resolve('x-thinking', ['x'])).toMatchObject({
      model: 'x',
      edits: { mode: 'on', show: true },
    });
  });

  test('belongs to the name where a channel lists it so', async () => {
    expect(await resolve('x-high', ['x', 'x-high'])).toMatchObject({ model: 'x-high', edits: undefined });
    expect(await resolve('kimi-k2-thinking', ['kimi-k2-thinking', 'kimi-k2'])).toMatchObject({
      model: 'kimi-k2-thinking',
    });
  });

  test('belongs to the name where nothing reasons: its effort would be lost', async () => {
    const modelOf = async (model: string) => {
      const embed = { operation: 'embed', format: 'embeddings', body: { model, input: 'x' } } as const;
      const passed = await passedOn(embed, ['x', 'y'], { aliases: { smart: 'y-high' } });
      return passed?.on?.model;
    };
    expect(await modelOf('x-high')).toBe('x-high');
    expect(await modelOf('x')).toBe('x');
    expect(await modelOf('smart')).toBe('y');
  });

  test('belongs to the name where nobody serves what is before it', async () => {
    expect(await resolve('mistral-medium', ['mistral-*'])).toMatchObject({ model: 'mistral-medium' });
    expect(await resolve('y-high', ['x'])).toMatchObject({ model: 'y-high', edits: undefined });
    expect(await resolve('-high', ['*'])).toMatchObject({ model: '-high' });
  });

  test('is read where one pattern matches both names', async () => {
    expect(await resolve('claude-opus-5-high', ['claude-*'])).toMatchObject({
      model: 'claude-opus-5',
      edits: { effort: 'high' },
    });
    expect(await resolve('claude-opus-5-thinking', ['claude-opus-5', '*'])).toMatchObject({
      model: 'claude-opus-5',
    });
  });

  test('stays on published names that only look so', async () => {
    for (const model of [
      'moonshotai/kimi-k2-thinking',
      'qwen/qwen3-next-80b-a3b-thinking',
      'mistral-medium',
    ]) {
      expect(await resolve(model, ['*'])).toMatchObject({ model, edits: undefined });
    }
    expect(await resolve('house-high', ['*'], { keep: ['house-*'] })).toMatchObject({ model: 'house-high' });
    expect(await resolve('house-2-medium', ['*'])).toMatchObject({
      model: 'house-2',
      edits: { effort: 'medium' },
    });
  });

  test('is read where only the beginning of the name is that of a published one', async () => {
    for (const model of ['glm-5.2', 'kimi-k2.6', 'moonshotai/kimi-k2.6', 'qwen3.5-plus']) {
      expect(await resolve(`${model}-thinking`, ['*'])).toMatchObject({ model, edits: { mode: 'on' } });
    }
  });

  test('is one only: the rest is the name', async () => {
    expect(await resolve('x-thinking-high', ['x'])).toMatchObject({
      model: 'x-thinking-high',
      edits: undefined,
    });
    expect(await resolve('x-thinking-high', ['x', 'x-thinking'])).toMatchObject({
      model: 'x-thinking',
      edits: { effort: 'high' },
    });
  });

  test('is not read when suffixes are off', async () => {
    expect(await resolve('x-high', ['x'], { suffixes: false })).toMatchObject({
      model: 'x-high',
      edits: undefined,
    });
  });
});

describe('more suffixes', () => {
  test('are part of the name unless they are asked for', async () => {
    for (const word of ['minimal', 'xhigh', 'max', 'none', 'nothinking']) {
      expect(await resolve(`x-${word}`, ['x'])).toMatchObject({ model: `x-${word}`, edits: undefined });
    }
  });

  test('are read for every model, or for those that match', async () => {
    for (const effort of ['minimal', 'xhigh', 'max', 'none']) {
      expect(await resolve(`x-${effort}`, ['x'], { extended: true })).toMatchObject({
        model: 'x',
        edits: { effort },
      });
    }
    expect(await resolve('x-nothinking', ['x'], { extended: ['x*'] })).toMatchObject({
      model: 'x',
      edits: { mode: 'off' },
    });
    expect(await resolve('y-nothinking', ['y'], { extended: ['x*'] })).toMatchObject({
      model: 'y-nothinking',
    });
    expect(await resolve('y-high', ['y'], { extended: ['x*'] })).toMatchObject({ model: 'y' });
  });
});

describe('what the request itself says about reasoning wins', () => {
  /** In the words of a format, whose clients say it so. */
  const edits = async (suffix: string, format: keyof typeof words, fields: JsonObject) =>
    (await resolve(`x-${suffix}`, ['x'], { extended: true }, words[format](`x-${suffix}`, fields))).edits;

  const words = {
    'chat-completions': (model: string, more: JsonObject): CallOptions => ({
      body: { model, messages: [{ role: 'user', content: 'Hello' }], ...more },
    }),
    messages: (model: string, more: JsonObject): CallOptions => ({
      format: 'messages',
      body: { model, max_tokens: 4_000, messages: [{ role: 'user', content: 'Hello' }], ...more },
    }),
    'generate-content': (model: string, thinkingConfig: JsonObject): CallOptions => ({
      format: 'generate-content',
      model,
      body: { contents: [{ parts: [{ text: 'Hello' }] }], generationConfig: { thinkingConfig } },
    }),
  };
  const adaptive = { thinking: { type: 'adaptive', display: 'omitted' } };
  const off = { thinking: { type: 'disabled' } };

  test('over how much', async () => {
    expect(await edits('high', 'chat-completions', { reasoning_effort: 'low' })).toBeUndefined();
    const budget = { thinking: { type: 'enabled', budget_tokens: 1_024 } };
    expect(await edits('high', 'messages', budget)).toBeUndefined();
    expect(await edits('high', 'messages', off)).toBeUndefined();
    expect(await edits('nothinking', 'chat-completions', { reasoning_effort: 'low' })).toBeUndefined();
  });

  test('over whether, and whether to show it', async () => {
    expect(await edits('thinking', 'messages', off)).toBeUndefined();
    expect(await edits('thinking', 'chat-completions', { reasoning_effort: 'none' })).toBeUndefined();
    expect(await edits('thinking', 'generate-content', { thinkingBudget: 0 })).toBeUndefined();
    expect(await edits('thinking', 'messages', adaptive)).toBeUndefined();
    expect(await edits('nothinking', 'messages', adaptive)).toBeUndefined();
  });

  test('and is filled up with what it leaves open', async () => {
    expect(await edits('high', 'messages', adaptive)).toEqual({
      mode: 'adaptive',
      display: 'omitted',
      show: false,
      effort: 'high',
    });
    expect(await edits('high', 'generate-content', { includeThoughts: true })).toEqual({
      show: true,
      effort: 'high',
    });
    expect(await edits('thinking', 'chat-completions', { reasoning_effort: 'low' })).toEqual({
      effort: 'low',
      mode: 'on',
      show: true,
    });
    expect(await edits('thinking', 'generate-content', { includeThoughts: false })).toEqual({
      show: false,
      mode: 'on',
    });
  });

  test('the name in force changes all the same', async () => {
    const low = words['chat-completions']('x-high', { reasoning_effort: 'low' });
    expect(await resolve('x-high', ['x'], {}, low)).toMatchObject({ model: 'x', requested: 'x-high' });
  });
});

describe('an alias', () => {
  test('is another name of a model', async () => {
    expect(await resolve('fast', ['x'], { aliases: { fast: 'x' } })).toEqual({
      model: 'x',
      requested: 'fast',
      edits: undefined,
    });
    expect(await resolve('x', ['x', 'y'], { aliases: { x: 'y' } })).toMatchObject({ model: 'y' });
    expect(await resolve('b', ['x'], { aliases: { a: 'x', b: 'a' } })).toMatchObject({ model: 'x' });
  });

  test('may carry a suffix, or get one from the client, which wins', async () => {
    const aliases = { deep: 'x-high', plain: 'x' };
    expect(await resolve('deep', ['x'], { aliases })).toMatchObject({
      model: 'x',
      edits: { effort: 'high' },
    });
    expect(await resolve('plain-low', ['x'], { aliases })).toMatchObject({
      model: 'x',
      edits: { effort: 'low' },
    });
    expect(await resolve('deep-low', ['x'], { aliases })).toMatchObject({
      model: 'x',
      edits: { effort: 'low' },
    });
  });

  test('in a circle ends', async () => {
    expect(await resolve('a', ['x'], { aliases: { a: 'b', b: 'a' } })).toMatchObject({ requested: 'a' });
  });

  test('of a model that nobody serves is told to the operator', async () => {
    const aliases = { fast: 'gone', good: 'x' };
    const tested = await testPlugins(modelAlias({ aliases }), { channels: { one: ['x'] } });
    onTestFinished(() => tested.close());
    expect(tested.lines).toMatchObject([{ level: 'warn', alias: 'fast', model: 'gone' }]);
  });

  test('stands in the model lists of those who may use it', async () => {
    const aliases = { fast: 'x', opus: 'claude-opus-5', dead: 'gone' };
    const tested = await testPlugins([modelAlias({ aliases }), modelAccess], {
      channels: { one: ['x', 'claude-*'] },
    });
    onTestFinished(() => tested.close());
    const lists = async (models?: readonly string[]) => {
      const key = models === undefined ? {} : { models };
      const [event] = (await tested.run({ operation: 'list-models', key })).events;
      return event?.type === 'models' ? event.models.map(({ id }) => id) : undefined;
    };
    expect(await lists()).toEqual(['fast', 'opus', 'x']);
    expect(await lists(['x'])).toEqual(['fast', 'x']);
    expect(await lists(['fast'])).toEqual(['fast']);
    expect(await lists(['claude-*'])).toEqual(['opus']);
  });
});

test('an ordinary name goes on untouched, and the body is not decoded for it', async () => {
  const spying = definePlugin({
    name: 'spying',
    stage: 'admit',
    setup: () => async (call, next) => {
      Object.defineProperty(call, 'request', { get: () => expect.unreachable('decoded') });
      return next(call);
    },
  });
  for (const model of ['x', 'claude-opus-5', 'unknown']) {
    const { plugins, passed } = between(modelAlias());
    const tested = await testPlugins([spying, ...plugins], { channels: { one: ['x', 'claude-*'] } });
    onTestFinished(() => tested.close());
    await tested.run({ model });
    expect(passed[0]?.on).toBe(passed[0]?.call);
  }
});

test('a misspelt option is an error', () => {
  expect(modelAlias.spec.options?.safeParse({ alias: {} }).success).toBe(false);
});
