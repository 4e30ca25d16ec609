import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { bodyEditor, type BodyEdits } from '../../../core/upstream/body-edits.ts';
import type { Channel } from '../../../core/sdk/call.ts';
import type { UpstreamRequest } from '../../../core/sdk/channel.ts';
import { settingsSchema } from '../../../core/settings/index.ts';
import { makeChannel } from '../../../core/config/configured-channel.ts';
import { defineChannel, type ChannelOptions } from '../../../core/sdk/define.ts';
import { createLog, maskSecrets } from '../../../core/log.ts';
import { modelNames, starsOf } from '../../../core/routing/model-names.ts';
import type { Form } from '../../../core/model/form.ts';
import { matchesModel } from '../../../core/sdk/allowed-models.ts';
import { testCall } from '../../support/call.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Made {
  readonly channel: Channel | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** The requests that reached the kind. */
  readonly opened: readonly UpstreamRequest[];
}

function make(options: ChannelOptions): Made {
  const problems: string[] = [];
  const warnings: string[] = [];
  const opened: UpstreamRequest[] = [];
  const kind = defineChannel({
    name: 'fake',
    models: ['m'],
    needsKey: false,
    setup: () => ({
      speaks: { chat: ['chat-completions'] },
      traits: (model) => ({ outputLimit: model.length }),
      open(_, request) {
        opened.push(request);
        return Promise.reject(new Error('enough'));
      },
    }),
  });
  const channel = makeChannel(kind({ ...options }), {
    settings: settingsSchema.parse({}),
    where: 'config',
    problems,
    warnings,
    log: createLog('silent', { write: () => {} }),
    format: () => undefined,
    discovery: () => {
      throw new Error('Nobody is asked here.');
    },
    onClose: (job) => void closers.push(job),
  });
  return { channel, problems, warnings, opened };
}

const request: UpstreamRequest = {
  operation: 'chat',
  format: 'chat-completions',
  model: 'm',
  stream: false,
  path: '/chat/completions',
  query: {},
  headers: {},
  body: '{}',
};

function edited(edits: BodyEdits, body: unknown): unknown {
  const text = JSON.stringify(body);
  const made = bodyEditor(edits)?.({ ...request, body: text });
  return JSON.parse(String(made?.body ?? text)) as unknown;
}

describe('members of bodies', () => {
  test.each<[string, BodyEdits, unknown, unknown]>([
    ['are set', { set: { seed: 7 } }, { model: 'm' }, { model: 'm', seed: 7 }],
    ['are set in place of others', { set: { seed: 7 } }, { seed: 1 }, { seed: 7 }],
    ['are set at any depth', { set: { 'a.b.c': true } }, {}, { a: { b: { c: true } } }],
    ['are set beside others', { set: { 'a.b': 1 } }, { a: { c: 2 } }, { a: { c: 2, b: 1 } }],
    ['are set where nothing was', { set: { 'a.b': 1 } }, { a: null }, { a: { b: 1 } }],
    ['are set where something else was', { set: { 'a.b': 1 } }, { a: 'high' }, { a: { b: 1 } }],
    [
      'are set in lists',
      { set: { 'tools.1.strict': true } },
      { tools: [{}, {}] },
      { tools: [{}, { strict: true }] },
    ],
    ['are set behind a list', { set: { 'stop.1': 'b' } }, { stop: ['a'] }, { stop: ['a', 'b'] }],
    ['make lists', { set: { 'stop.0': 'a' } }, {}, { stop: ['a'] }],
    [
      'leave no holes in lists',
      { set: { 'stop.999999999': 'a', 'stop.x': 1 } },
      { stop: ['a'] },
      { stop: ['a'] },
    ],
    ['may be objects', { set: { a: { b: [1] }, 'a.c': 2 } }, {}, { a: { b: [1], c: 2 } }],
    ['may be null', { set: { a: null } }, { a: 1 }, { a: null }],
    ['are taken off', { remove: ['seed'] }, { model: 'm', seed: 1 }, { model: 'm' }],
    ['are taken off at any depth', { remove: ['a.b'] }, { a: { b: 1, c: 2 } }, { a: { c: 2 } }],
    ['are taken off lists', { remove: ['tools.0'] }, { tools: [1, 2] }, { tools: [2] }],
    [
      'are taken off in lists',
      { remove: ['tools.0.strict'] },
      { tools: [{ strict: true }] },
      { tools: [{}] },
    ],
    [
      'that are not there are not taken off',
      { remove: ['a.b', 'x.y.z', 'l.5', 'l.x'] },
      { a: 1, l: [1] },
      { a: 1, l: [1] },
    ],
    [
      'are taken off before they are set',
      { set: { 'a.b': 1 }, remove: ['a'] },
      { a: { c: 1 } },
      { a: { b: 1 } },
    ],
  ])('%s', (_, edits, before, after) => {
    expect(edited(edits, before)).toEqual(after);
  });

  test('a body in which nothing is to be changed stays the bytes that it is', () => {
    const body = Buffer.from('{ "big": 12345678901234567890, "a": 1.0 }');
    const edit = bodyEditor({ remove: ['seed', 'a.b'] });
    expect(edit?.({ ...request, body })?.body).toBe(body);
    expect(bodyEditor({})).toBeUndefined();
    expect(bodyEditor(undefined)).toBeUndefined();
  });

  test('a request without a body gets none', () => {
    const asking: UpstreamRequest = { ...request, method: 'GET', body: '' };
    expect(bodyEditor({ set: { a: 1 } })?.(asking)).toBe(asking);
  });

  test('are found however the client spells their names', () => {
    const made = bodyEditor({ remove: ['tools'] })?.({ ...request, body: '{"\\u0074ools":[1],"a":1}' });
    expect(made?.body).toBe('{"a":1}');
  });

  test('are the same for each request, whatever becomes of the one before', () => {
    const edit = bodyEditor({ set: { a: { b: 1 }, 'a.c': 2 } });
    const bodies = [1, 2].map(() => edit?.({ ...request, body: '{}' })?.body);
    expect(bodies).toEqual(['{"a":{"b":1,"c":2}}', '{"a":{"b":1,"c":2}}']);
  });

  test('of a form are its texts; its files stay', () => {
    const file = {
      filename: 'a',
      mimeType: 'a/b',
      size: 0,
      head: Buffer.alloc(0),
      open: () => expect.fail(),
    };
    const form: Form = [
      { name: 'model', value: 'm' },
      { name: 'prompt', value: 'x' },
      { name: 'file', file },
      { name: 'granularity[]', value: 'a' },
      { name: 'granularity[]', value: 'b' },
    ];
    const edit = bodyEditor({
      set: { prompt: 'y', temperature: 0, 'a.b': 1 },
      remove: ['granularity[]', 'file'],
    });
    expect(edit?.({ ...request, body: form })?.body).toEqual([
      { name: 'model', value: 'm' },
      { name: 'file', file },
      { name: 'prompt', value: 'y' },
      { name: 'temperature', value: '0' },
    ]);
  });

  test('set at a path are there afterwards, and all else is as it was', () => {
    const name = fc.constantFrom('a', 'b', 'c', '0', '1');
    const json = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), json),
        fc.array(name, { minLength: 1, maxLength: 3 }),
        (body, names) => {
          const plain = JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
          const path = ['top', ...names];
          const after = edited({ set: { [path.join('.')]: 'here' } }, plain) as Record<string, unknown>;
          const { top, ...rest } = after;
          const { top: _, ...before } = plain;
          expect(rest).toEqual(before);
          let value: unknown = top;
          // A list begins at 0: a path that leads behind its end leads nowhere.
          for (const step of names) value = (value as Record<string, unknown> | undefined)?.[step];
          const reachable = names.every((step) => step !== '1');
          expect(value).toBe(reachable ? 'here' : undefined);
        },
      ),
    );
  });

  test('change what the channel opens', async () => {
    const { channel, opened } = make({ body: { set: { 'metadata.team': 'blue' } } });
    await channel?.open(testCall().call, request).catch(() => {});
    await make({})
      .channel?.open(testCall().call, request)
      .catch(() => {});
    expect(opened.map(({ body }) => body)).toEqual(['{"metadata":{"team":"blue"}}']);
  });
});

describe('names of models', () => {
  test.each([
    ['gpt-*', 'openai/gpt-*', 'gpt-5-mini', 'openai/gpt-5-mini'],
    ['openai/*', '*', 'openai/gpt-5', 'gpt-5'],
    ['*', 'azure/*', 'gpt-5', 'azure/gpt-5'],
    ['*-latest', '*', 'a-latest', 'a'],
    ['*/*', '*--*', 'vendor/model', 'vendor--model'],
    ['*/*', '*', 'vendor/model', 'vendor'],
    ['big-*', 'big-latest', 'big-3', 'big-latest'],
    ['gpt-*', 'gpt-*', 'gpt-', 'gpt-'],
    ['a*', '$&-*-$1', 'ax', '$&-x-$1'],
  ])('%s: %s makes %s %s', (pattern, target, model, upstream) => {
    expect(make({ models: { [pattern]: target } }).channel?.upstreamModel(model)).toBe(upstream);
  });

  test('an exact name comes first, then patterns in their order', () => {
    const names = modelNames({ '*': 'rest-*', 'gpt-*': 'never', 'gpt-5': 'exact' });
    expect(names('gpt-5')).toBe('exact');
    expect(names('gpt-4')).toBe('rest-gpt-4');
    expect(modelNames(['a', 'b-*'])('b-1')).toBe('b-1');
    expect(modelNames(['a', 'b-*'])('c')).toBeUndefined();
  });

  test('a name fits a pattern here exactly where it does elsewhere, and its stars give it back', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 4 });
    const parts = fc.array(part, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        parts,
        fc.oneof(
          part,
          parts.map((some) => some.join('a')),
        ),
        (pieces, name) => {
          const pattern = pieces.join('*');
          const stars = starsOf(pattern, name);
          expect(stars !== undefined).toBe(matchesModel([pattern], name));
          if (stars === undefined) return;
          let star = 0;
          expect(pattern.replaceAll('*', () => stars[star++] ?? '?')).toBe(name);
        },
      ),
    );
  });

  test('a provider’s name with more stars than the public one is an error', () => {
    expect(make({ models: { fast: 'gpt-*' } }).problems).toEqual([
      'config: option "models": "gpt-*" has more stars than "fast". Each star stands for the text of the same star in the public name.',
    ]);
  });

  test('traits are found by the public name and by the provider’s', () => {
    const { channel } = make({
      models: { fast: 'gpt-fast', 'big-*': 'x/big-*' },
      traits: { fast: { prefill: true }, 'big-*': { outputLimit: 1 }, 'gpt-*': { reasoning: 'none' } },
    });
    expect(channel?.traits('gpt-fast')).toEqual({ outputLimit: 8, prefill: true, reasoning: 'none' });
    expect(channel?.traits('x/big-1')).toEqual({ outputLimit: 1, statesOutputLimit: false });
  });
});

describe('base models', () => {
  test('give a name of the operator’s own the traits of the model behind it', () => {
    const { channel, warnings } = make({
      models: {
        fast: { name: 'blue', baseModel: 'openai/gpt-4o' },
        'team-*': { name: 'dep-*', baseModel: 'openai/gpt-*' },
        plain: { name: 'red' },
      },
    });
    expect(warnings).toEqual([]);
    expect(channel?.upstreamModel('fast')).toBe('blue');
    expect(channel?.upstreamModel('plain')).toBe('red');
    // The catalogue's limits come before those of the kind.
    const limits = { inputLimit: 128_000, outputLimit: 16_384, statesOutputLimit: true };
    expect(channel?.traits('blue')).toEqual(limits);
    expect(channel?.priceOf?.('dep-4o-mini')).toMatchObject({ name: 'openai/gpt-4o-mini' });
    expect(channel?.priceOf?.('red')).toBeUndefined();
  });

  test('that the catalogue does not have are warned of', () => {
    const { channel, warnings } = make({ models: { fast: { name: 'blue', baseModel: 'gtp-4o' } } });
    expect(channel?.priceOf?.('blue')).toBeUndefined();
    expect(warnings).toEqual([
      'config: baseModel "gtp-4o" is not in the catalogue and has no price. Check the spelling, name the provider (PROVIDER/MODEL), or set "prices".',
    ]);
  });

  test.each([
    [
      { one: { name: 'blue', baseModel: 'a' }, other: { name: 'blue', baseModel: 'b' } },
      '"blue" has two base models, "a" and "b": set one',
    ],
    [
      { one: { name: 'blue', baseModel: 'gpt-*' } },
      '"gpt-*" has more stars than "blue". Each star stands for the text of the same star in the public name',
    ],
  ])('%j is an error', (models, problem) => {
    expect(make({ models }).problems).toEqual([`config: option "models": ${problem}.`]);
  });

  test('a misspelt member is an error', () => {
    const models = { one: { name: 'blue', basemodel: 'a' } } as unknown as ChannelOptions['models'] & object;
    expect(make({ models }).problems).toHaveLength(1);
  });
});

const pem = (name: string): string =>
  readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');

describe('options', () => {
  test.each<[string, ChannelOptions, RegExp]>([
    [
      'a path to what all objects share',
      { body: { set: { '__proto__.a': 1 } } },
      /"body\.set": "__proto__\.a" may not contain __proto__/,
    ],
    [
      'another',
      { body: { remove: ['a.constructor.prototype'] } },
      /"body\.remove\.0": "a\.constructor\.prototype" may not contain constructor/,
    ],
    [
      'an empty name in a path',
      { body: { set: { 'a..b': 1 } } },
      /"a\.\.b" has an empty name between two dots/,
    ],
    [
      'a header that ends the message',
      { headers: { set: { 'Content-Length': '1' } } },
      /"Content-Length" belongs to the connection/,
    ],
    ['a header that hides it', { headers: { remove: ['transfer-encoding'] } }, /belongs to the connection/],
    ['no name of a header', { headers: { set: { 'a b': '1' } } }, /"a b" is not a valid header name/],
    [
      'a header of two lines',
      { headers: { set: { a: 'b\r\nc: d' } } },
      /headers\.set\.a.*characters that a header must not contain/,
    ],
    ['a proxy of another kind', { proxy: 'socks5://127.0.0.1:1' }, /"proxy": must be http:\/\/host:port/],
    [
      'a password without % codes',
      { proxy: 'http://u:100%zz@127.0.0.1:1' },
      /"proxy": has a password that is not percent-encoded/,
    ],
    [
      'a path in place of a certificate',
      { tls: { ca: '/etc/ca.pem' } },
      /"tls": ca is not valid.*not its path/,
    ],
    [
      'one that is damaged',
      { tls: { ca: ['-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----'] } },
      /"tls": ca is not valid/,
    ],
    ['a certificate without its key', { tls: { cert: pem('certificate') } }, /cert and key belong together/],
    [
      'a key that is none',
      { tls: { cert: pem('certificate'), key: pem('certificate') } },
      /cert and key is not valid/,
    ],
    ['an option that does not exist', { headers: { add: {} } } as never, /unknown option "add"/],
    ['a misspelt place', { systemPrompt: { text: 'a', place: 'behind' } } as never, /systemPrompt/],
  ])('%s is an error', (_, options, sentence) => {
    const { channel, problems } = make(options);
    expect(channel).toBeUndefined();
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(sentence);
    expect(problems[0]).not.toContain('BEGIN');
  });

  test('that are sound make a channel', () => {
    const { channel, problems, warnings } = make({
      headers: { set: { 'X-Team': 'blue', host: 'provider.test' }, remove: ['User-Agent'] },
      proxy: 'https://user:pass@proxy.test:3128',
      tls: {
        ca: [pem('certificate')],
        cert: pem('certificate'),
        key: pem('key'),
        servername: 'provider.test',
      },
      systemPrompt: 'Be kind.',
      timeouts: { connect: 100, idle: 100, firstToken: 300, attempt: 400 },
    });
    expect(problems).toEqual([]);
    expect(warnings).toEqual([]);
    expect(channel).toMatchObject({
      systemPrompt: { text: 'Be kind.', place: 'before' },
      firstTokenTimeout: 300,
      attemptTimeout: 400,
    });
  });

  test('a provider whose certificate is not checked is warned of', () => {
    const { channel, warnings } = make({ tls: { verify: false } });
    expect(channel).toBeDefined();
    expect(warnings).toEqual([expect.stringMatching(/^config: tls\.verify is false: anyone between/)]);
    expect(make({ tls: { verify: true } }).warnings).toEqual([]);
  });

  test('secrets in them are shown nowhere', () => {
    make({
      proxy: 'http://team:pass%20word%20of%20mine@proxy.test:3128',
      headers: {
        set: { Authorization: 'Bearer of bad news', 'x-api-key': 'plain-secret', 'x-team': 'blue team' },
      },
      tls: { cert: pem('certificate'), key: pem('key') },
    });
    const basic = Buffer.from('team:pass word of mine').toString('base64');
    const line = JSON.stringify([
      'pass%20word%20of%20mine',
      'pass word of mine',
      basic,
      'of bad news',
      'plain-secret',
      pem('key'),
      'blue team',
    ]);
    expect(JSON.parse(maskSecrets(line))).toEqual(['…', '…', '…', '…', '…', '…', 'blue team']);
  });
});
