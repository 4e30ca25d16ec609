import { expect, test } from 'vitest';
import type { Affinity } from '../../../core/sdk/call.ts';
import { able } from '../../../core/routing/able.ts';
import { testCall } from '../../support/call.ts';
import { createCatalog } from '../../../core/routing/catalog.ts';
import { catalogOf, fakeChannel } from './_targets.ts';

const catalog = catalogOf({ id: 'x' }, { id: 'y' });

function channelsFor(affinity: Affinity): readonly string[] {
  const { call } = testCall({ model: 'm' });
  return able(call.with({ affinity }), catalog).map(({ channel }) => channel.id);
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
      message: 'The model "m" is no longer served where this conversation began.',
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
  expect(() => able(none.call, named)).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'no_available_channel',
      param: 'model',
      retryable: false,
      message: 'No channel serves the model "other". GET /v1/models lists what there is.',
    }),
  );
  const silent = createCatalog([{ ...fakeChannel({ id: 'x' }), speaks: { embed: ['plain'] } }], 0);
  const { call } = testCall({ model: 'm' });
  expect(() => able(call, silent)).toThrow(
    expect.objectContaining({ code: 'endpoint_not_supported', param: 'model' }),
  );
});

test('a model whose channels are all switched off may come back', () => {
  catalog.switchOff(new Set(['x', 'y']));
  try {
    expect(() => able(testCall({ model: 'm' }).call, catalog)).toThrow(
      expect.objectContaining({ code: 'no_available_channel', retryable: true }),
    );
  } finally {
    catalog.switchOff(new Set());
  }
});
