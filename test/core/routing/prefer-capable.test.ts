import { describe, expect, test } from 'vitest';
import type { KnownModel } from '../../../core/sdk/channel.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { preferCapable } from '../../../core/routing/prefer-capable.ts';
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
const clip: JsonObject = {
  messages: [
    { role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } }] },
  ],
};
const paper: JsonObject = {
  messages: [
    {
      role: 'user',
      content: [
        {
          type: 'file',
          file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQ=' },
        },
      ],
    },
  ],
};
/** A picture that a tool has given. */
const shown: JsonObject = {
  messages: [
    ...hello,
    {
      role: 'assistant',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    {
      role: 'tool',
      tool_call_id: 'call_1',
      content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    },
  ],
};

/** The ids of the channels in the order in which a call with this body sees them, and where a rank ends: `blind | far`. */
async function order(wanted: readonly Wanted[], body: JsonObject): Promise<string> {
  const { call, exchange, read } = await makeCall({ body: { model: 'm', messages: hello, ...body } });
  read();
  const candidates = preferCapable(candidatesOf(...wanted), call);
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
    ['a search of the web', { web_search_options: {} }, { cannot: ['web-search'] }, 'sees | other'],
    ['no search of the web', { tools: [tool] }, { cannot: ['web-search'] }, 'other sees'],
    ['a search of the web, without tools', { web_search_options: {} }, { cannot: ['tools'] }, 'other sees'],
    ['a picture that a tool has given', shown, { can: ['tools'] }, 'sees | other'],
    [
      'JSON without a schema',
      { response_format: { type: 'json_object' } },
      { cannot: ['structured-output'] },
      'other sees',
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

  test('documents and videos go first to models that take them', async () => {
    const reads: Wanted = { id: 'reads', known: { takes: ['document'] } };
    const watches: Wanted = { id: 'watches', known: { takes: ['video'] } };
    expect(await order([watches, reads], paper)).toBe('reads | watches');
    expect(await order([reads, watches], clip)).toBe('watches | reads');
  });

  test('a context that the text just fits is long enough, and media say nothing of a length', async () => {
    const words = { messages: [{ role: 'user', content: 'word '.repeat(5_000) }] };
    const bytes = Buffer.byteLength(JSON.stringify({ model: 'm', ...words }));
    // Six bytes count as one token.
    const enough: Wanted = { id: 'enough', traits: { inputLimit: bytes / 6 } };
    const short: Wanted = { id: 'short', traits: { inputLimit: bytes / 6 - 1 } };
    expect(await order([short, enough], words)).toBe('enough | short');
    const part = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const mixed = {
      messages: [{ role: 'user', content: [part, { type: 'text', text: 'word '.repeat(5_000) }] }],
    };
    const first: Wanted = { id: 'first', traits: { inputLimit: 100 }, known: { takes: ['image'] } };
    expect(await order([first, { ...sees, traits: { inputLimit: 1e9 } }], mixed)).toBe('first sees');
  });

  test('a long text goes first to a model whose context has room for it', async () => {
    const short: Wanted = { id: 'short', traits: { inputLimit: 1000 } };
    const long: Wanted = { id: 'long', traits: { inputLimit: 100_000 } };
    const words = { messages: [{ role: 'user', content: 'word '.repeat(5_000) }] };
    expect(await order([short, long], words)).toBe('long | short');
    expect(await order([short, long], {})).toBe('short long');
  });

  test('what the config says of reasoning counts for more than the list', async () => {
    const configured: Wanted = {
      id: 'told',
      traits: { reasoning: 'effort' },
      known: { cannot: ['reasoning'] },
    };
    const silent: Wanted = { id: 'silent', traits: { reasoning: 'none' }, known: { can: ['reasoning'] } };
    expect(await order([silent, configured], { reasoning_effort: 'high' })).toBe('told | silent');
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

test('nothing is looked at for what is no chat, or where no two channels share a rank', async () => {
  const { call, exchange, read } = await makeCall({ body: { model: 'm', messages: hello, tools: [tool] } });
  read();
  const ranked = candidatesOf({ ...blind, priority: 1 }, { id: 'cannot', known: { cannot: ['tools'] } });
  expect(preferCapable(ranked, call)).toBe(ranked);
  const alone = candidatesOf({ id: 'cannot', known: { cannot: ['tools'] } });
  expect(preferCapable(alone, call)).toBe(alone);
  exchange.end();
  const embed = await makeCall({
    operation: 'embed',
    format: 'embeddings',
    body: { model: 'm', input: 'word '.repeat(5_000) },
  });
  embed.read();
  const equal = candidatesOf({ id: 'short', traits: { inputLimit: 10 } }, { id: 'long' });
  expect(preferCapable(equal, embed.call)).toBe(equal);
  embed.exchange.end();
});

test('where all fit, or none does, the candidates are the same as before', async () => {
  const { call, exchange, read } = await makeCall({ body: { model: 'm', messages: hello, tools: [tool] } });
  read();
  for (const known of [{ can: ['tools'] }, { cannot: ['tools'] }] as const) {
    const equal = candidatesOf({ id: 'one', known }, { id: 'other', known });
    expect(preferCapable(equal, call)).toBe(equal);
  }
  exchange.end();
});
