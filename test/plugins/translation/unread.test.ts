import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Exchange } from '../../../core/call/exchange.ts';
import { firstView } from '../../../core/call/view.ts';
import invoke from '../../../core/formats/invoke/index.ts';
import { longest, outlineOf, wholeOf } from '../../../core/json/outline/index.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../core/model/json.ts';
import type { Loss } from '../../../core/model/extra.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import type { Call, Target, Wire } from '../../../core/sdk/call.ts';
import type { Codec, Format, RouteParams } from '../../../core/sdk/format.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { encodeRequest, encodeUnread, type Encoded } from '../../../plugins/translation/encode-request.ts';
import type { TranslationOptions } from '../../../plugins/translation/options.ts';
import { unreadOf } from '../../../plugins/translation/unread.ts';
import { allFormats, fixturesOf, requestOf } from '../../support/fixtures.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_122;
const limits = { depth: 64, values: 10_000, members: 1000 };

/** A call whose outline was checked alone, as long ones are, or one that was decoded whole. */
function callOf(format: Format, text: string, params: RouteParams, isLong: boolean): Call | undefined {
  const codec = format.codecs.chat as Codec | undefined;
  if (codec === undefined) throw new Error(`${format.name} has no chats.`);
  const bytes = Buffer.from(text);
  const wire: Wire = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    params,
    ip: '192.0.2.7',
    bytes,
    body: undefined,
  };
  const exchange = new Exchange('req_unread', 'chat', format, codec, wire);
  const outline = outlineOf(bytes, limits);
  if (outline === undefined) return undefined;
  try {
    exchange.understand(bytes, wholeOf(outline, bytes));
    if (isLong) exchange.outline(outline, codec.validate(outline.body, params));
    else exchange.decoded = codec.validate(JSON.parse(text) as JsonObject, params);
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
  return firstView(exchange);
}

const beginnings = [
  'On and on. ',
  `{"a":[1,"two"],"b":"${'x'.repeat(60)}"}`,
  '[{"a":1}]',
  ' \n\t  7\tconst answer = "forty-two";\n',
  'Error: it is not there. ',
  'error',
  '\u00a0\u2003',
  '   ',
  '\\f100000',
  '\f100000 ',
  '<system>\\"',
  'Größe → 😀 ',
  '日本語の長い文章です。',
  '\\',
  '"',
  '/\u2028',
  '{"file":"a.ts","content":"',
  '\ud800',
];

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same with long words in the place of others, by chance. */
function stretched(value: JsonValue, random: () => number, name = ''): JsonValue {
  if (typeof value === 'string') {
    if (random() > 0.6 || name === 'type' || name === 'role') return value;
    const beginning = beginnings[Math.floor(random() * beginnings.length)] ?? '';
    const text = isObject(parsed(beginning))
      ? beginning
      : beginning.repeat(Math.ceil((longest + 40 * random()) / beginning.length));
    return random() < 0.3 ? value + text : random() < 0.2 ? `${text} ` : text;
  }
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => stretched(one, random, name));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, stretched(one as JsonValue, random, key)]),
  );
}

const models: readonly ModelTraits[] = [
  {},
  { midSystem: false, jsonSchema: false, replaysReasoning: true, reasoning: 'object' },
  { reasoning: 'budget', refuses: ['cache', 'customTools'], toolNameLimit: 20, systemRole: 'developer' },
  { inputLimit: 9_000, outputLimit: 8_500, fetchesUrls: false },
];

interface EncodedSummary {
  readonly encoded: Omit<Encoded, 'body' | 'written' | 'toolNames'> & { readonly renamed: boolean };
  readonly body: string;
  readonly losses: readonly Loss[];
}

function summaryOf(
  { body, written, toolNames, ...encoded }: Encoded,
  losses: readonly Loss[],
): EncodedSummary {
  const sent: unknown = written === undefined ? body : JSON.parse(written.toString());
  return {
    encoded: { ...encoded, renamed: toolNames !== undefined },
    body: JSON.stringify(sent, undefined, 1),
    losses,
  };
}

const formats = await allFormats();
const channels = [...formats, invoke].filter(({ codecs }) => codecs.chat?.writesMarks === true);
const pairs = formats
  .filter(({ codecs }) => codecs.chat?.outlines === true)
  .flatMap((from) =>
    channels.filter((to) => to !== from).map((to) => ({ client: from.name, channel: to.name, from, to })),
  );

describe.each(pairs)('a long request of $client for a channel of $channel', ({ from, to }) => {
  const requests = (['requests', 'tolerated'] as const)
    .flatMap((kind) => fixturesOf(from.name, kind, '.json'))
    .map(requestOf)
    .filter(({ body }) => isObject(body));
  const codec = to.codecs.chat as Codec;

  test('says what it would say were all its words read, and loses the same', () => {
    let unread = 0;
    const random = fc.infiniteStream(fc.nat({ max: 999 }));
    fc.assert(
      fc.property(
        fc.constantFrom(...requests),
        fc.constantFrom(...models),
        fc.constantFrom('drop', 'refuse'),
        random,
        ({ body, params }, traits, unsupported, numbers) => {
          const next = (): number => (numbers.next().value ?? 0) / 1000;
          const plain = JSON.stringify(stretched(body, next));
          const text = next() < 0.1 ? plain.replaceAll('\\f', '\\u000c') : plain;
          const [long, whole] = [true, false].map((isLong) => callOf(from, text, params, isLong));
          if (long === undefined || whole === undefined) return;
          const found = unreadOf(long, codec);
          if (found === undefined) return;
          const target = { model: 'm', traits, channel: { id: 'c' } } as unknown as Target;
          const options = { unsupported } as TranslationOptions;
          const losses: Loss[] = [];
          const encoded = encodeUnread(long, target, codec, options, losses, found);
          if (encoded === undefined) return;
          unread += 1;
          const wanted: Loss[] = [];
          const expected = encodeRequest(whole, target, codec, options, wanted);
          expect(summaryOf(encoded, losses)).toEqual(summaryOf(expected, wanted));
        },
      ),
      { seed, numRuns: tries(1500) },
    );
    expect(unread).toBeGreaterThan(10);
  });
});
