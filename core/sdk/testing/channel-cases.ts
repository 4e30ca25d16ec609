import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { ChannelEntry } from '../author/channel.ts';
import { startGateway, type TestGateway } from './gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from './provider.ts';
import { trials, tryOut, type Trial } from '../../conformance/index.ts';
import { oblige, obliging } from './obliging.ts';
import { ended, reply, text, thought, toolCall, type Script } from './script.ts';
import { formatVoice, type Heard, type Voice } from './voice.ts';

/**
 * What a provider may lack. The cases about it are left out.
 *
 * @example
 * const lacks: readonly Lack[] = ['images', 'reasoning'];
 */
export type Lack =
  | 'streams'
  | 'tools'
  | 'parallel tools'
  | 'images'
  | 'structured output'
  | 'reasoning'
  | 'limits'
  | 'documents'
  | 'prompt cache';

/**
 * A channel kind, and what is to be known of it to try it out.
 *
 * @example
 * channelCases({ channel: ({ url, key }) => mine({ baseUrl: `${url}/v1`, key, models: ['test-model'] }), lacks: ['images'] })
 */
export interface ChannelUnderTest {
  /** The channel as an operator writes it, at this address, with this key. It must serve `test-model`, or the `model` below. */
  channel(at: { readonly url: string; readonly key: string }): ChannelEntry;
  /** A model that the channel serves. Default `test-model`. */
  readonly model?: string;
  /** The format that it speaks to its provider. Default `chat-completions`. */
  readonly format?: string;
  /** How its provider speaks, where that is no public format, or not quite. */
  readonly voice?: Voice;
  readonly lacks?: readonly Lack[];
  /** What its provider answers to a GET, by its path with its query; undefined for 404. Default: 404 to every one. */
  readonly lists?: (path: string) => JsonValue | undefined;
  /** What a client is answered for a provider's status, where it is not as usual. */
  readonly errors?: Readonly<Record<number, number>>;
}

/**
 * One promise of every channel. Rejects with what is wrong.
 *
 * @example
 * test(name, run);
 */
export interface ChannelCase {
  readonly name: string;
  run(): Promise<void>;
}

const key = 'test-key-0123456789abcdef';

/** A client's status for a provider's: the key that was refused is the operator's, and a model that is not there may be elsewhere. */
const usualErrors: Readonly<Record<number, number>> = {
  400: 400,
  401: 502,
  403: 502,
  404: 503,
  413: 413,
  422: 400,
  429: 429,
  500: 502,
  502: 502,
  503: 503,
};

/** A gateway with the channel, and the provider behind it. */
interface Scene {
  readonly gateway: TestGateway;
  readonly provider: ScriptedUpstream;
  /** What the provider understood of its last request. */
  heard(): Heard;
  ask(body: JsonObject, signal?: AbortSignal): Promise<Response>;
}

/** What the provider does with a request. */
type Deed =
  | { readonly says: Script | ((heard: Heard) => Script) }
  | { readonly status: number }
  /** Pieces of a stream go out one by one, each when the one before was let go. */
  | { readonly streams: Script; step(index: number): Promise<'on' | 'cut' | 'stay'> };

const eventsOf = (script: Script): readonly GatewayEvent[] =>
  script.filter((step): step is GatewayEvent => 'type' in step);

/**
 * What every channel promises, tried over a provider on this machine: text, streams, tools, images, structured output, reasoning, usage,
 * limits, errors, clients who leave. Each case starts a gateway of its own.
 *
 * @example
 * import { test } from 'node:test';
 * for (const { name, run } of channelCases({ channel: ({ url, key }) => mine({ baseUrl: url, key, models: ['test-model'] }) }))
 *   test(name, run);
 */
export function channelCases(tested: ChannelUnderTest): readonly ChannelCase[] {
  const { format = 'chat-completions', lacks = [], errors = {} } = tested;
  const model = tested.model ?? 'test-model';
  const one = (name: string, deed: Deed, run: (scene: Scene) => Promise<void>): ChannelCase => ({
    name,
    async run() {
      const voice = tested.voice ?? (await formatVoice(format));
      const provider = await startUpstream((request, response) =>
        listed(tested, request, response) ? undefined : perform(deed, voice, request, response),
      );
      const gateway = await startGateway({
        channels: [tested.channel({ url: provider.url, key })],
        routing: { attempts: 1 },
      });
      try {
        await run({
          gateway,
          provider,
          heard: () => voice.hear(asked(provider)),
          ask: (body, signal) =>
            fetch(`${gateway.url}/v1/chat/completions`, {
              method: 'POST',
              headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
              body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], ...body }),
              ...(signal === undefined ? {} : { signal }),
            }),
        });
      } finally {
        await gateway.close();
        await provider.close();
      }
    },
  });
  const unless = (lack: Lack, ...cases: readonly ChannelCase[]): readonly ChannelCase[] =>
    lacks.includes(lack) ? [] : cases;

  const tried = (trial: Trial): ChannelCase => ({
    name: `holds what is asked of providers live: ${trial.name}`,
    async run() {
      const voice = tested.voice ?? (await formatVoice(format));
      const provider = await startUpstream((request, response) =>
        listed(tested, request, response) ? undefined : oblige(voice, request, response, obliging),
      );
      const { kind, spec, options } = tested.channel({ url: provider.url, key });
      const models = { [model]: model, 'sluice-no-such-model': 'sluice-no-such-model' };
      const gateway = await startGateway({
        channels: [{ kind, spec, options: { ...options, models } }],
        routing: { attempts: 1 },
      });
      try {
        const place = {
          url: gateway.url,
          key: gateway.key,
          model,
          stranger: 'sluice-no-such-model',
          format,
        };
        const { result, remark } = await tryOut(trial, place);
        assert.equal(result, 'holds', remark);
      } finally {
        await gateway.close();
        await provider.close();
      }
    },
  });

  return [
    one(
      'answers with a text, and tells what was used',
      { says: reply('Good day.') },
      async ({ ask, heard }) => {
        const body = await answered(await ask({}));
        assert.equal(at(body, 'choices', 0, 'message', 'content'), 'Good day.');
        assert.equal(at(body, 'choices', 0, 'finish_reason'), 'stop');
        assert.deepEqual(
          [at(body, 'usage', 'prompt_tokens'), at(body, 'usage', 'completion_tokens')],
          [10, 5],
        );
        assert.equal(textOf(heard()), 'Hello');
        assert.equal(heard().stream, false);
      },
    ),
    one(
      'shows its key to the provider alone',
      { says: reply('Good day.') },
      async ({ ask, provider, gateway }) => {
        const answer = await ask({});
        const told = `${JSON.stringify([...answer.headers])}${await answer.text()}${JSON.stringify(gateway.lines)}`;
        assert.ok(!told.includes(key), 'the key is in the answer or in the log');
        const { body, headers } = asked(provider);
        assert.ok(!body.includes(key), 'the key is in the body of the request');
        assert.ok(
          !JSON.stringify(headers).includes(gateway.key),
          'the provider has seen the key of the client',
        );
      },
    ),
    one(
      'tells nobody where its provider stands when that is away',
      { says: reply('Good day.') },
      async ({ ask, provider }) => {
        await provider.close();
        const answer = await ask({});
        const { host } = new URL(provider.url);
        assert.ok(answer.status >= 500, `the status is ${answer.status}`);
        assert.ok(!(await answer.text()).includes(host), 'the address is in the answer');
      },
    ),
    ...unless('streams', ...streamCases(one)),
    ...unless('tools', ...toolCases(one, lacks)),
    ...unless(
      'images',
      one('takes images', { says: reply('A dot.') }, async ({ ask, heard }) => {
        const data =
          'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
        const content = [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ];
        await answered(await ask({ messages: [{ role: 'user', content }] }));
        const blocks = heard().request.messages.flatMap((message) => message.content);
        const image = blocks.find((block) => block.type === 'image');
        assert.ok(
          image?.type === 'image' && JSON.stringify(image.source).includes(data),
          'no image has arrived',
        );
      }),
    ),
    ...unless(
      'structured output',
      one(
        'gives structured output',
        {
          says: ({ request: { toolChoice } }) =>
            toolChoice?.type === 'tool'
              ? ended({ finish: 'tool-calls' }, toolCall(toolChoice.name, { city: 'Oslo' }))
              : reply('{"city":"Oslo"}'),
        },
        async ({ ask }) => {
          const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
          const body = await answered(
            await ask({
              response_format: { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } },
            }),
          );
          const content = at(body, 'choices', 0, 'message', 'content');
          assert.deepEqual(JSON.parse(String(content)), { city: 'Oslo' });
        },
      ),
    ),
    ...unless(
      'reasoning',
      one('passes reasoning on', { says: reply(thought('They greet.'), 'Good day.') }, async ({ ask }) => {
        const body = await answered(await ask({ reasoning_effort: 'low' }));
        assert.equal(at(body, 'choices', 0, 'message', 'content'), 'Good day.');
        assert.equal(at(body, 'choices', 0, 'message', 'reasoning_content'), 'They greet.');
      }),
    ),
    ...unless(
      'limits',
      one(
        'keeps the limit of the output',
        { says: ended({ finish: 'length' }, 'Once') },
        async ({ ask, heard }) => {
          const body = await answered(await ask({ max_tokens: 17 }));
          assert.equal(heard().request.settings.maxOutput, 17);
          assert.equal(at(body, 'choices', 0, 'finish_reason'), 'length');
        },
      ),
    ),
    ...trials
      .filter(({ operation, lack }) => operation === 'chat' && (lack === undefined || !lacks.includes(lack)))
      .map(tried),
    ...Object.entries({ ...usualErrors, ...errors }).map(([status, expected]) =>
      one(
        `answers ${expected} when its provider answers ${status}`,
        { status: Number(status) },
        async ({ ask }) => {
          const answer = await ask({});
          assert.equal(answer.status, expected);
          assert.ok(isObject(at((await answer.json()) as JsonValue, 'error')), 'the answer is no error');
        },
      ),
    ),
  ];
}

type MakeCase = (name: string, deed: Deed, run: (scene: Scene) => Promise<void>) => ChannelCase;

function streamCases(one: MakeCase): readonly ChannelCase[] {
  const words = reply(text('Good ', 'day ', 'to you.'));
  let release = (): void => {};
  return [
    one(
      'passes a stream on as it comes',
      {
        streams: words,
        // The provider goes on only when the client has read what came first.
        step: (index) => (index === 2 ? new Promise((resolve) => (release = () => resolve('on'))) : going()),
      },
      async ({ ask, heard }) => {
        const answer = await ask({ stream: true });
        let read = '';
        const decoder = new TextDecoder();
        for await (const bytes of answer.body ?? []) {
          read += decoder.decode(bytes, { stream: true });
          release();
        }
        assert.equal(heard().stream, true);
        assert.equal(contentOf(read), 'Good day to you.');
        assert.match(read, /data: \[DONE\]\s*$/);
      },
    ),
    one(
      'tells the client of a stream that was cut',
      { streams: words, step: async (index) => (index === 2 ? 'cut' : 'on') },
      async ({ ask }) => {
        const answer = await ask({ stream: true });
        const read = await answer.text().catch(() => 'broken');
        assert.ok(
          answer.status >= 400 || read === 'broken' || read.includes('"error"'),
          `a clean end: ${read}`,
        );
      },
    ),
    one(
      'lets go of its provider when the client leaves',
      { streams: words, step: async (index) => (index === 2 ? 'stay' : 'on') },
      async ({ ask, provider }) => {
        const leaving = new AbortController();
        const answer = await ask({ stream: true }, leaving.signal);
        await answer.body?.getReader().read();
        leaving.abort();
        await asked(provider).closed;
      },
    ),
  ];
}

function toolCases(one: MakeCase, lacks: readonly Lack[]): readonly ChannelCase[] {
  const weather = {
    type: 'function',
    function: {
      name: 'weather',
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  };
  const cities = lacks.includes('parallel tools') ? ['Oslo'] : ['Oslo', 'Rome'];
  const calls = reply(...cities.map((city, index) => toolCall('weather', { city }, `call_${index}`)));
  const wanted = cities.map((city) => ({ name: 'weather', city }));
  return [
    one('calls tools', { says: calls }, async ({ ask, heard }) => {
      const body = await answered(await ask({ tools: [weather] }));
      assert.deepEqual(callsOf(at(body, 'choices', 0, 'message', 'tool_calls')), wanted);
      assert.equal(at(body, 'choices', 0, 'finish_reason'), 'tool_calls');
      const [tool] = heard().request.tools;
      assert.ok(tool?.type === 'function' && tool.name === 'weather', 'the provider got no tool');
      assert.deepEqual(at(tool.schema ?? null, 'required'), ['city']);
    }),
    one('takes what tools have given', { says: reply('It rains.') }, async ({ ask, heard }) => {
      const asking = cities.map((city, index) => ({
        id: `call_${index}`,
        type: 'function',
        function: { name: 'weather', arguments: JSON.stringify({ city }) },
      }));
      const given = cities.map((city, index) => ({
        role: 'tool',
        tool_call_id: `call_${index}`,
        content: `Rain in ${city}`,
      }));
      const messages = [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', tool_calls: asking },
        ...given,
      ];
      await answered(await ask({ tools: [weather], messages }));
      const blocks = heard().request.messages.flatMap(({ content }) => content);
      const results = blocks.filter((block) => block.type === 'tool-result');
      assert.deepEqual(
        results.map(({ content }) => content.map((block) => ('text' in block ? block.text : '')).join('')),
        cities.map((city) => `Rain in ${city}`),
      );
    }),
    ...(lacks.includes('streams')
      ? []
      : [
          one('streams the calls of tools', { streams: calls, step: going }, async ({ ask }) => {
            const read = await (await ask({ tools: [weather], stream: true })).text();
            const pieces = framesOf(read).flatMap((frame) => {
              const some = at(frame, 'choices', 0, 'delta', 'tool_calls');
              return Array.isArray(some) ? (some as readonly JsonValue[]) : [];
            });
            const whole = cities.map((_city, index) => {
              const own = pieces.filter((piece) => at(piece, 'index') === index);
              const joined = (member: string): string =>
                own.map((piece) => at(piece, 'function', member) ?? '').join('');
              return { function: { name: joined('name'), arguments: joined('arguments') } };
            });
            assert.deepEqual(callsOf(whole), wanted);
          }),
        ]),
  ];
}

/** True where the request was for a list that the provider has. */
function listed(
  { lists }: ChannelUnderTest,
  { method, url }: SeenRequest,
  response: Parameters<Parameters<typeof startUpstream>[0]>[1],
): boolean {
  const list = method === 'GET' ? lists?.(url) : undefined;
  if (list === undefined) return false;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(list));
  return true;
}

const going = async (): Promise<'on'> => 'on';

async function perform(
  deed: Deed,
  voice: Voice,
  request: SeenRequest,
  response: Parameters<Parameters<typeof startUpstream>[0]>[1],
): Promise<void> {
  if (request.method === 'GET') {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    return;
  }
  if ('status' in deed) {
    response.writeHead(deed.status, { 'content-type': 'application/json' });
    response.end(voice.error(deed.status, 'The provider says no.'));
    return;
  }
  if ('says' in deed) {
    const script = typeof deed.says === 'function' ? deed.says(voice.hear(request)) : deed.says;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(voice.whole(eventsOf(script), request));
    return;
  }
  const { pieces, end } = voice.stream(eventsOf(deed.streams), request);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [index, piece] of pieces.entries()) {
    // oxlint-disable no-await-in-loop -- one after the other is what a stream is
    const goes = await deed.step(index);
    if (goes === 'stay') return;
    if (goes === 'cut') {
      // What was written shall have arrived.
      await wait(20);
      response.destroy();
      return;
    }
    response.write(piece);
    // oxlint-enable no-await-in-loop
  }
  response.end(end);
}

/** The request by which the provider was asked for an answer. */
function asked({ requests }: ScriptedUpstream): SeenRequest {
  const request = requests.findLast(({ method }) => method === 'POST');
  assert.ok(request !== undefined, 'the provider was asked nothing');
  return request;
}

async function answered(answer: Response): Promise<JsonValue> {
  const body = await answer.text();
  assert.equal(answer.status, 200, body);
  return JSON.parse(body) as JsonValue;
}

/** What stands at a path of a document; undefined when there is nothing. */
function at(value: JsonValue | undefined, ...path: readonly (string | number)[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (found, step) => (found as Record<string | number, JsonValue> | null | undefined)?.[step],
    value,
  );
}

function callsOf(calls: JsonValue | undefined): readonly unknown[] {
  assert.ok(Array.isArray(calls), 'there are no calls');
  return (calls as readonly JsonValue[]).map((call) => ({
    name: at(call, 'function', 'name'),
    ...(JSON.parse(String(at(call, 'function', 'arguments'))) as object),
  }));
}

function framesOf(stream: string): readonly JsonValue[] {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data) as JsonValue);
}

function contentOf(stream: string): string {
  return framesOf(stream)
    .map((frame) => at(frame, 'choices', 0, 'delta', 'content') ?? '')
    .join('');
}

function textOf({ request }: Heard): string {
  return request.messages
    .flatMap(({ content }) => content.map((block) => (block.type === 'text' ? block.text : '')))
    .join('\n');
}
