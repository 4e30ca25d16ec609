import { describe, expect, test } from 'vitest';
import { caller, GatewayError, type ApiKey } from 'sluice';
import type { Channel } from '../../../core/sdk/call.ts';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import { collectionOf } from '../../../plugins/provider-objects/collections.ts';
import {
  selectAccount,
  keeps,
  mayUse,
  accountOf,
  type ProviderAccount,
  type AccountPreferences,
} from '../../../plugins/provider-objects/account.ts';
import { testCall } from '../../support/call.ts';

const files = collectionOf('chat-completions', 'files');

/** A channel with two keys that keeps files, and calls models as they are called here. */
function channelOf(id: string, models: readonly string[], more: Partial<Channel> = {}): Channel {
  return {
    id,
    keys: [
      { id: `${id}-1`, index: 0 },
      { id: `${id}-2`, index: 1 },
    ],
    keeps: { 'chat-completions': ['files'] },
    models,
    priority: 0,
    upstreamModel: (model: string) => (models.includes(model) ? model : undefined),
    ...more,
  } as unknown as Channel;
}

const a = channelOf('a', ['m', 'both']);
const b = channelOf('b', ['n', 'both']);
const none = channelOf('none', ['m', 'q'], {
  keeps: { messages: ['files'], 'chat-completions': ['batches'] },
});

type Catalog = Parameters<typeof accountOf>[1];

function catalogOf(channels: readonly Channel[], off: readonly string[] = []): Catalog {
  return {
    channels,
    isOn: (id: string) => !off.includes(id),
    serves: (model: string) => channels.some(({ upstreamModel }) => upstreamModel(model) !== undefined),
    candidates: (model: string) =>
      channels
        .filter(({ id, upstreamModel }) => !off.includes(id) && upstreamModel(model) !== undefined)
        .map((channel) => ({ channel, rank: 0, targets: [] })),
  } as unknown as Catalog;
}

interface Asking extends AccountPreferences {
  readonly header?: string;
  readonly query?: string;
  readonly key?: Partial<ApiKey>;
}

function choose(catalog: Catalog, { header, query, key, ...fields }: Asking = {}): string {
  const { call } = testCall();
  if (header !== undefined) call.wire.headers['x-sluice-channel'] = header;
  if (query !== undefined) call.wire.query.set('channel', query);
  if (key !== undefined) call.set(caller, key as ApiKey);
  const { channel, key: chosen } = selectAccount(call, files, catalog, fields);
  return `${channel.id} ${chosen.id}`;
}
function refusal(...args: Parameters<typeof choose>): GatewayError {
  try {
    choose(...args);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('A place was chosen.');
}

const pinned: ProviderAccount = { channel: b, key: b.keys[1]! };

describe('where something new is made', () => {
  test('is where the objects are that it refers to, whatever else is said', () => {
    expect(choose(catalogOf([a, b]), { pinned })).toBe('b b-2');
    expect(choose(catalogOf([a, b]), { pinned, header: 'a' })).toBe('b b-2');
  });

  test('is at the channel that the client names, in the header or else in the query', () => {
    const catalog = catalogOf([a, b]);
    expect(choose(catalog, { header: 'b' })).toBe('b b-1');
    expect(choose(catalog, { query: 'b' })).toBe('b b-1');
    expect(choose(catalog, { header: 'a', query: 'b' })).toBe('a a-1');
    expect(choose(catalog, { header: '', query: 'b' })).toBe('a a-1');
    expect(choose(catalog, { query: '' })).toBe('a a-1');
    expect(choose(catalog, { header: 'b', models: ['both'] })).toBe('b b-1');
  });

  test('is at the best channel that serves its first model, keeps such objects and serves the other models', () => {
    expect(choose(catalogOf([none, a, b]), { models: ['m'] })).toBe('a a-1');
    expect(choose(catalogOf([a, b]), { models: ['both'] })).toBe('a a-1');
    expect(choose(catalogOf([a, b]), { models: ['both', 'n'] })).toBe('b b-1');
    expect(choose(catalogOf([a, b], ['a']), { models: ['both'] })).toBe('b b-1');
  });

  test('is, where it names no model, at the first in rank that is on, keeps such objects and is open to the key', () => {
    const high = channelOf('high', ['h'], { priority: 2 });
    expect(choose(catalogOf([none, a, b]))).toBe('a a-1');
    expect(choose(catalogOf([a, b, high]))).toBe('high high-1');
    expect(choose(catalogOf([a, high, b]), { key: {} })).toBe('high high-1');
    expect(choose(catalogOf([a, b, high], ['high']))).toBe('a a-1');
    expect(choose(catalogOf([a, b, high]), { key: { models: ['n'] } })).toBe('b b-1');
  });

  test('is nowhere where no channel keeps such objects, or none that the key may use', () => {
    const sentence = 'No channel available to this request stores a file.';
    for (const error of [
      refusal(catalogOf([none])),
      refusal(catalogOf([])),
      refusal(catalogOf([none]), { models: ['m'] }),
      refusal(catalogOf([a, b]), { models: ['m', 'n'] }),
      refusal(catalogOf([a, b]), { key: { models: ['q'] } }),
      refusal(catalogOf([a, b], ['a', 'b'])),
      refusal(catalogOf([channelOf('keyless', ['m'], { keys: [] })])),
    ])
      expect(error).toMatchObject({ code: 'endpoint_not_supported', message: sentence });
  });

  test('is not at a channel that is named and is not there, keeps no such objects or is closed to the key', () => {
    const catalog = catalogOf([a, none]);
    for (const error of [
      refusal(catalog, { header: 'unknown' }),
      refusal(catalog, { header: 'none' }),
      refusal(catalog, { header: 'a', key: { models: ['q'] } }),
    ])
      expect(error).toMatchObject({ code: 'invalid_value', param: 'x-sluice-channel' });
    expect(refusal(catalog, { query: 'x'.repeat(200) }).message).toContain(`"${'x'.repeat(100)}" that this`);
    expect(refusal(catalog, { header: 'none', models: ['m'] }).message).toContain('"none"');
  });

  test('is not at a channel that is switched off, or has no key', () => {
    const off = 'The channel for this is switched off at the moment.';
    expect(refusal(catalogOf([a, b], ['b']), { header: 'b' })).toMatchObject({
      code: 'no_available_channel',
      message: off,
    });
    expect(refusal(catalogOf([a, b], ['b']), { pinned }).message).toBe(off);
    const keyless = channelOf('keyless', ['m'], { keys: [] });
    expect(refusal(catalogOf([a, keyless]), { header: 'keyless' }).message).toBe(off);
  });

  test('is not at a channel that does not serve its models', () => {
    for (const error of [
      refusal(catalogOf([a, b]), { pinned, models: ['m'] }),
      refusal(catalogOf([a, b]), { header: 'b', models: ['both', 'm'] }),
    ])
      expect(error).toMatchObject({
        code: 'invalid_value',
        param: 'model',
        message: 'The model "m" is not served by the channel at which this file has to be made.',
      });
    expect(choose(catalogOf([a, b]), { pinned, models: ['both', 'n'] })).toBe('b b-2');
  });

  test('is not there for a model that no channel serves now; one that is served otherwise may be tried again', () => {
    expect(refusal(catalogOf([a, b]), { models: ['unknown'] })).toMatchObject({
      code: 'no_available_channel',
      param: 'model',
      retryable: false,
      message: 'No channel serves the model "unknown". GET /v1/models lists the available models.',
    });
    expect(refusal(catalogOf([a, b], ['a']), { models: ['m'] }).retryable).toBe(true);
  });
});

describe('where an object is', () => {
  const object = (channel: string, key: string): ProviderObject => ({ channel, key }) as ProviderObject;

  test('is the channel and the key that made it, or the first of its keys where that has been replaced', () => {
    const catalog = catalogOf([a, b]);
    expect(accountOf(object('b', 'b-2'), catalog)).toEqual({ channel: b, key: b.keys[1] });
    expect(accountOf(object('b', 'gone'), catalog)).toEqual({ channel: b, key: b.keys[0] });
  });

  test('is nowhere when the channel has gone, and trying again does not help', () => {
    const keyless = channelOf('keyless', [], { keys: [] });
    for (const id of ['gone', 'keyless'])
      expect(() => accountOf(object(id, 'x'), catalogOf([a, keyless]))).toThrow(
        expect.objectContaining({ code: 'no_available_channel', retryable: false }) as Error,
      );
  });
});

describe('a key', () => {
  test('without a list of models may use every channel', () => {
    expect(mayUse(undefined, a)).toBe(true);
    expect(mayUse({}, a)).toBe(true);
  });

  test.each<[readonly string[], readonly string[], boolean]>([
    [['m'], ['m'], true],
    [['x', 'm'], ['m'], true],
    [['x'], ['m'], false],
    [[], ['m'], false],
    [['gpt-4o*'], ['gpt-*'], true],
    [['*'], ['m'], true],
    [['claude-*'], ['gpt-*'], false],
    [['gpt-4o*'], ['gpt-4o-mini'], true],
  ])('for %j may use a channel of %j: %s', (models, served, expected) => {
    expect(mayUse({ models }, channelOf('c', served))).toBe(expected);
  });

  test('may use a channel by the models that its provider lists, and by those behind its patterns', () => {
    expect(mayUse({ models: ['listed-*'] }, channelOf('c', ['m'], { listed: () => ['listed-1'] }))).toBe(
      true,
    );
    expect(mayUse({ models: ['listed-*'] }, channelOf('c', ['m'], { listed: () => [] }))).toBe(false);
    const mapped = channelOf('c', ['gpt-*'], {
      upstreamModel: (model) => (model === 'gpt-1' ? 'there' : undefined),
    });
    expect(mayUse({ models: ['gpt-1'] }, mapped)).toBe(true);
  });
});

test('a channel keeps the collections that it names for the format, and no others', () => {
  expect(keeps(a, files)).toBe(true);
  expect(keeps(none, files)).toBe(false);
  expect(keeps(a, collectionOf('messages', 'files'))).toBe(false);
  expect(keeps({ ...a, keeps: undefined } as unknown as Channel, files)).toBe(false);
});
