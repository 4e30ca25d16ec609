import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import openai from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let restricted: string;
let inDollars: string;
let inTokens: string;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(voices['chat-completions'].whole('hi')));
  });
  gateway = await startGateway({
    channels: [
      openrouter({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['cheap/one', 'dear/one'] }),
      openai({ id: 'plain', key: 'k', baseUrl: `${upstream.url}/v1`, models: ['plain'] }),
      openai({
        id: 'named',
        key: 'k',
        baseUrl: `${upstream.url}/v1`,
        models: ['named'],
        routingFields: ['fallbacks'],
      }),
      // One model at two channels: the first asked chooses nothing by itself, the reserve does; and the other way round.
      openai({ id: 'before', key: 'k', baseUrl: `${upstream.url}/v1`, models: ['reserve'], priority: 2 }),
      openrouter({ id: 'behind', key: 'k', baseUrl: `${upstream.url}/v1`, models: ['reserve'], priority: 1 }),
      openrouter({ id: 'ahead', key: 'k', baseUrl: `${upstream.url}/v1`, models: ['first'], priority: 2 }),
      openai({ id: 'after', key: 'k', baseUrl: `${upstream.url}/v1`, models: ['first'], priority: 1 }),
    ],
    prices: {
      'cheap/one': { input: 1, output: 1 },
      'dear/one': { input: 100, output: 100 },
      plain: { input: 1, output: 1 },
      named: { input: 1, output: 1 },
      reserve: { input: 1, output: 1 },
      first: { input: 1, output: 1 },
    },
  });
  const make = async (options: object): Promise<string> =>
    (await gateway.apiKeys.create({ name: 'key', ...options })).value;
  restricted = await make({ models: ['cheap/*', 'plain', 'named', 'reserve', 'first'] });
  inDollars = await make({ budgets: [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }] });
  inTokens = await make({ budgets: [{ unit: 'token', period: 'total', amount: 1e9 }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

async function send(body: string | Json, key: string) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error?: { param?: string; message: string } };
  return { status: response.status, param: error?.param, message: error?.message };
}

const bodyOf = (more: Json, model = 'cheap/one'): Json => ({
  model,
  max_tokens: 5,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});

const fields: readonly (readonly [string, unknown])[] = [
  ['models', ['dear/one']],
  ['route', 'fallback'],
  ['provider', { order: ['dear'] }],
  ['preset', 'dear'],
  ['plugins', [{ id: 'web' }]],
  ['web_search_options', {}],
  ['Models', ['dear/one']],
  ['MODELſ', ['dear/one']],
];

describe.each(fields)('%s at a channel that chooses by it', (name, value) => {
  test('is refused with 403 to a key that names models, and to one with a budget in dollars', async () => {
    for (const key of [restricted, inDollars]) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await send(bodyOf({ [name]: value }), key)).toMatchObject({ status: 403, param: name });
    }
    expect(upstream.requests.filter(({ method }) => method === 'POST')).toEqual([]);
  });

  test('passes for a key that is bound by neither', async () => {
    for (const key of [gateway.key, inTokens]) {
      // oxlint-disable-next-line no-await-in-loop
      expect((await send(bodyOf({ [name]: value }), key)).status).toBe(200);
    }
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({ [name]: value });
  });
});

test('embeddings are refused as chats are where they choose a vendor', async () => {
  upstream.requests.length = 0;
  const embed = async (body: Json): Promise<number> =>
    (
      await fetch(`${gateway.url}/v1/embeddings`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${restricted}` },
        body: JSON.stringify({ model: 'cheap/one', input: 'hi', ...body }),
      })
    ).status;
  expect(await embed({ provider: { order: ['dear'] } })).toBe(403);
  expect(upstream.requests.filter(({ method }) => method === 'POST')).toEqual([]);
  await embed({ input_type: 'search_query' });
  expect(upstream.requests.map(({ url }) => url)).toEqual(['/v1/embeddings']);
  expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toEqual({
    model: 'cheap/one',
    input: 'hi',
    input_type: 'search_query',
  });
});

test.each(['reserve', 'first'])(
  'of several channels for the model "%s" each is looked at, because the call may fall back to it',
  async (model) => {
    for (const key of [restricted, inDollars]) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await send(bodyOf({ route: 'fallback' }, model), key)).toMatchObject({
        status: 403,
        param: 'route',
      });
    }
    expect(upstream.requests.filter(({ method }) => method === 'POST')).toEqual([]);
    expect((await send(bodyOf({}, model), restricted)).status).toBe(200);
  },
);

test('a member that no channel of the model chooses by passes, and an operator may name others', async () => {
  expect((await send(bodyOf({ route: 'fallback' }, 'plain'), restricted)).status).toBe(200);
  expect((await send(bodyOf({ fallbacks: ['x'] }, 'named'), restricted)).status).toBe(403);
  expect((await send(bodyOf({}, 'named'), restricted)).status).toBe(200);
});

describe('a name in another spelling', () => {
  test.each(['MODEL', 'Model', 'mOdEl'])('%s is refused to everybody', async (name) => {
    for (const body of [
      bodyOf({ [name]: 'dear/one' }),
      { [name]: 'dear/one', messages: bodyOf({}).messages },
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await send(body as Json, gateway.key)).toMatchObject({ status: 400, param: name });
    }
    const [format] = [voices.messages];
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { ...format.headers, 'content-type': 'application/json', 'x-api-key': gateway.key },
      body: JSON.stringify({ ...format.body('cheap/one', false), [name]: 'dear/one' }),
    });
    expect(response.status).toBe(400);
    await response.arrayBuffer();
    expect(upstream.requests.filter(({ method }) => method === 'POST')).toEqual([]);
  });

  test('of a member that is there too is refused', async () => {
    expect(await send(bodyOf({ Max_Tokens: 1_000_000 }), gateway.key)).toMatchObject({
      status: 400,
      param: 'Max_Tokens',
    });
    expect((await send(bodyOf({ Custom: 1, other: 2 }), gateway.key)).status).toBe(200);
  });
});

/** Ways in which a provider may parse a body: members in the order of the text, names with or without case. */
const readings = (text: string): unknown[] => {
  const found: unknown[] = [];
  JSON.parse(text, function revive(this: Json, name: string, value: unknown) {
    if (name.toLowerCase() === 'model') found.push(value);
    return value;
  });
  return found;
};

test('whatever is given twice, the provider is sent the model that was checked, and no other', async () => {
  const spelling = fc.constantFrom('model', 'MODEL', 'Model', 'mod\\u0065l', 'm\\u006fdel');
  const member = fc.tuple(spelling, fc.constantFrom('cheap/one', 'dear/one', 'plain'));
  await fc.assert(
    fc.asyncProperty(fc.array(member, { minLength: 1, maxLength: 4 }), async (members) => {
      upstream.requests.length = 0;
      const text = `{${members.map(([name, value]) => `"${name}":"${value}"`).join(',')},"messages":[{"role":"user","content":"hi"}]}`;
      const { status } = await send(text, restricted);
      const calls = upstream.requests.filter(({ method }) => method === 'POST');
      for (const { body } of calls) {
        const sent = body.toString();
        expect(readings(sent)).toEqual([(JSON.parse(sent) as Json).model]);
        expect(sent.match(/"(m|\\u006d)(o|\\u006f)del"\s*:/gi)).toHaveLength(1);
        expect((JSON.parse(sent) as Json).model).not.toBe('dear/one');
      }
      expect(calls).toHaveLength(status === 200 ? 1 : 0);
    }),
    { numRuns: 60 },
  );
});
