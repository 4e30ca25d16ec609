import { describe, expect, test } from 'vitest';
import type { KnownModel } from '../../../core/sdk/channel.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { fittingFirst } from '../../../core/routing/fitting.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { candidatesOf, type Wanted } from './_targets.ts';

const hello = [{ role: 'user', content: 'Hello' }];
const picture: JsonObject = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      ],
    },
  ],
};
const sound: JsonObject = {
  messages: [
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }] },
  ],
};
const tool = { type: 'function', function: { name: 'look' } };

/** The ids of the channels in the order in which a call with this body sees them, and where a rank ends: `blind | far`. */
async function order(wanted: readonly Wanted[], body: JsonObject): Promise<string> {
  const { call, exchange, read } = await makeCall({ body: { model: 'm', messages: hello, ...body } });
  read();
  const candidates = fittingFirst(candidatesOf(...wanted), call);
  exchange.end();
  return candidates
    .map(({ channel, rank }, index) =>
      index > 0 && candidates[index - 1]?.rank !== rank ? `| ${channel.id}` : channel.id,
    )
    .join(' ');
}

const sees: Wanted = { id: 'sees', known: { takes: ['image'], can: ['tools'] } };
const blind: Wanted = { id: 'blind', known: { can: ['tools'] } };

describe('of channels of one rank those come first that fit', () => {
  test.each<[string, JsonObject, KnownModel | undefined, 'blind | sees' | 'sees | other' | 'other sees']>([
    ['a picture to a model that takes none', picture, { can: ['tools'] }, 'sees | other'],
    ['a picture to a model of which nothing is known', picture, undefined, 'other sees'],
    ['words', {}, { cannot: ['tools'] }, 'other sees'],
    ['tools to a model that has none', { tools: [tool] }, { cannot: ['tools'] }, 'sees | other'],
    ['tools where the list is silent', { tools: [tool] }, {}, 'other sees'],
    [
      'tools of another kind',
      { tools: [{ type: 'custom', custom: { name: 'look' } }] },
      { cannot: ['tools'] },
      'sees | other',
    ],
    [
      'reasoning that is switched off',
      { thinking: { type: 'disabled' } },
      { cannot: ['reasoning'] },
      'other sees',
    ],
    [
      'reasoning that is switched on',
      { thinking: { type: 'enabled' } },
      { cannot: ['reasoning'] },
      'sees | other',
    ],
    ['an effort', { reasoning_effort: 'high' }, { cannot: ['reasoning'] }, 'sees | other'],
    ['no effort', { reasoning_effort: 'none' }, { cannot: ['reasoning'] }, 'other sees'],
    [
      'a schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } },
      { cannot: ['structured-output'] },
      'sees | other',
    ],
  ])('%s', async (_what, body, known, expected) => {
    expect(await order([{ id: 'other', ...(known === undefined ? {} : { known }) }, sees], body)).toBe(
      expected,
    );
  });

  test('sound goes first to a model that takes it', async () => {
    const hears: Wanted = { id: 'hears', known: { takes: ['audio'] } };
    expect(await order([sees, hears], sound)).toBe('hears | sees');
    expect(await order([sees, hears], picture)).toBe('sees | hears');
  });

  test('a long text goes first to a model whose context has room for it', async () => {
    const short: Wanted = { id: 'short', traits: { inputLimit: 1000 } };
    const long: Wanted = { id: 'long', traits: { inputLimit: 100_000 } };
    const words = { messages: [{ role: 'user', content: 'word '.repeat(5_000) }] };
    expect(await order([short, long], words)).toBe('long | short');
    expect(await order([short, long], {})).toBe('short long');
  });

  test('what the config says of reasoning counts for more than the list', async () => {
    const told: Wanted = { id: 'told', traits: { reasoning: 'effort' }, known: { cannot: ['reasoning'] } };
    const silent: Wanted = { id: 'silent', traits: { reasoning: 'none' }, known: { can: ['reasoning'] } };
    expect(await order([silent, told], { reasoning_effort: 'high' })).toBe('told | silent');
  });
});

test('priorities count for more, and no channel is left out', async () => {
  const first = { ...blind, priority: 1 };
  expect(await order([first, sees], picture)).toBe('blind | sees');
  expect(await order([first, { ...sees, priority: 1 }, { id: 'last', known: {} }], picture)).toBe(
    'sees | blind | last',
  );
});

test('where none fits the order is what it was', async () => {
  expect(await order([blind, { id: 'other', known: {} }], picture)).toBe('blind other');
});
