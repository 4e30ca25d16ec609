import { describe, expect, test } from 'vitest';
import type { Affinity } from '../../../core/sdk/affinity.ts';
import type { Channel } from '../../../core/sdk/call.ts';
import { setClientCredential } from '../../../core/sdk/client-credential.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { findCandidates } from '../../../core/routing/candidates.ts';
import { testCall } from '../../support/call.ts';
import { createCatalog } from '../../../core/routing/catalog.ts';
import { catalogOf, fakeChannel } from './_targets.ts';

const catalog = catalogOf({ id: 'x' }, { id: 'y' });

function channelsFor(affinity: Affinity): readonly string[] {
  const { call } = testCall({ model: 'm' });
  return findCandidates(call.with({ affinity }), catalog).map(({ channel }) => channel.id);
}

test('a conversation that may go on at one channel alone goes on while that channel serves the model', () => {
  expect(channelsFor({ channel: 'x', only: true })).toEqual(['x', 'y']);
  expect(channelsFor({ channel: 'y', only: true })).toEqual(['x', 'y']);
});

test('a conversation is refused with 503 when the model is no longer served where it began', () => {
  expect(() => channelsFor({ channel: 'gone', only: true })).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'no_available_channel',
      param: 'model',
      message: 'The model "m" is no longer served by the channel where this conversation began.',
      retryable: false,
    }),
  );
  expect(channelsFor({ channel: 'gone' })).toEqual(['x', 'y']);
});

test('a channel that is switched off may come back, so that its conversations are told to try again', () => {
  catalog.switchOff(new Set(['x']));
  try {
    expect(() => channelsFor({ channel: 'x', only: true })).toThrow(
      expect.objectContaining({ code: 'no_available_channel', retryable: true }),
    );
  } finally {
    catalog.switchOff(new Set());
  }
});

test('a model that no channel serves, and a path that its channels do not serve, are told apart', () => {
  const none = testCall({ model: 'other' });
  const named = createCatalog([{ ...fakeChannel({ id: 'x' }), upstreamModel: () => undefined }], 0);
  expect(() => findCandidates(none.call, named)).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'no_available_channel',
      param: 'model',
      retryable: false,
      message: 'No channel serves the model "other". GET /v1/models lists the available models.',
    }),
  );
  const silent = createCatalog([{ ...fakeChannel({ id: 'x' }), speaks: { embed: ['plain'] } }], 0);
  const { call } = testCall({ model: 'm' });
  expect(() => findCandidates(call, silent)).toThrow(
    expect.objectContaining({ code: 'endpoint_not_supported', param: 'model' }),
  );
});

test('a model whose channels are all switched off may come back', () => {
  catalog.switchOff(new Set(['x', 'y']));
  try {
    expect(() => findCandidates(testCall({ model: 'm' }).call, catalog)).toThrow(
      expect.objectContaining({ code: 'no_available_channel', retryable: true }),
    );
  } finally {
    catalog.switchOff(new Set());
  }
});

describe('a client’s own credential of a provider', () => {
  const forwarding = (id: string, provider: string): Channel => ({
    ...fakeChannel({ id }),
    forwards: provider,
  });
  const own = fakeChannel({ id: 'own' });
  const channelsOf = (channels: readonly Channel[], has: boolean): readonly string[] => {
    const { call } = testCall({ model: 'm' });
    if (has) setClientCredential(call, { kind: 'key', value: 'sk-of-the-client' });
    return findCandidates(call, createCatalog(channels, 0)).map(({ channel }) => channel.id);
  };

  test('goes to channels of one provider that take it, and to no others', () => {
    const channels = [own, forwarding('first', 'x'), forwarding('other', 'y'), forwarding('second', 'x')];
    expect(channelsOf(channels, true)).toEqual(['first', 'second']);
  });

  test('is of no use where no channel takes it', () => {
    expect(channelsOf([own], true)).toEqual(['own']);
  });

  test('is not needed where a channel has keys of its own, and asked for with 401 where none has', () => {
    expect(channelsOf([forwarding('first', 'x'), own], false)).toEqual(['own']);
    expect(() => channelsOf([forwarding('first', 'x')], false)).toThrow(
      expect.objectContaining({ status: 401, code: 'missing_api_key', param: 'model' }),
    );
  });
});

describe('a request that names an address of storage', () => {
  const reading = (id: string, ...mayRead: readonly string[]): Channel => ({
    ...fakeChannel({ id }),
    speaks: { chat: ['chat-completions'] },
    mayRead,
  });
  const channelsOf = async (
    channels: readonly Channel[],
    url: string,
    affinity?: Affinity,
  ): Promise<readonly string[]> => {
    const content = [{ type: 'image_url', image_url: { url } }];
    const made = await makeCall({ body: { model: 'm', messages: [{ role: 'user', content }] } });
    made.read();
    try {
      const call = affinity === undefined ? made.call : made.call.with({ affinity });
      return findCandidates(call, createCatalog(channels, 0)).map(({ channel }) => channel.id);
    } finally {
      made.exchange.end();
    }
  };
  const bucket = 's3://bucket/a.png';

  test('goes to the channels that may read it, and is refused with 403 where none may', async () => {
    const channels = [reading('no'), reading('yes', 's3://bucket/'), reading('other', 's3://elsewhere/')];
    expect(await channelsOf(channels, bucket)).toEqual(['yes']);
    expect(await channelsOf(channels, 'https://example.com/a.png')).toEqual(['no', 'yes', 'other']);
    await expect(channelsOf([reading('no'), reading('other')], bucket)).rejects.toMatchObject({
      status: 403,
      code: 'forbidden',
      param: 'messages[0].content[0].image_url.url',
    });
  });

  test('in a conversation that may go on at one channel alone is for that channel to read', async () => {
    const channels = [reading('no'), reading('yes', 's3://bucket/')];
    expect(await channelsOf(channels, bucket, { channel: 'yes', only: true })).toEqual(['yes']);
    await expect(channelsOf(channels, bucket, { channel: 'no', only: true })).rejects.toMatchObject({
      code: 'forbidden',
    });
    // A wish alone leaves the others.
    expect(await channelsOf(channels, bucket, { channel: 'no' })).toEqual(['yes']);
  });
});
