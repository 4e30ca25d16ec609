import { expect, onTestFinished, test } from 'vitest';
import type { Operation } from '../../core/sdk/operation.ts';
import type { ChannelEntry } from '../../core/sdk/define.ts';
import { findChannelKinds } from '../../core/config/definitions.ts';
import { home } from '../../core/config/installation/home.ts';
import translation from '../../plugins/translation/index.ts';
import { startGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { writeLong } from './_endless.ts';
import { startTokenServer } from './_tokens.ts';
import { presets } from './_presets.ts';

const mebibyte = 1024 * 1024;
/** The limit of the translation here, in bytes. Channels that read a response themselves read up to 32 MiB. */
const limit = 64 * 1024;
/** Bytes of each response of the provider. */
const tooLong = 40 * mebibyte;
/** Bytes after which a response counts as passed on. */
const passedOn = 2 * mebibyte;

const requests: {
  readonly [O in Operation]?: (model: string) => readonly [path: string, body: object | FormData];
} = {
  chat: (model) => ['/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] }],
  'count-tokens': (model) => [
    '/v1/messages/count_tokens',
    { model, messages: [{ role: 'user', content: 'Hi' }] },
  ],
  compact: (model) => ['/v1/responses/compact', { model, input: 'Hi' }],
  embed: (model) => ['/v1/embeddings', { model, input: 'Hi' }],
  rerank: (model) => ['/v1/rerank', { model, query: 'Hi', documents: ['a', 'b'] }],
  moderate: (model) => ['/v1/moderations', { model, input: 'Hi' }],
  'generate-image': (model) => ['/v1/images/generations', { model, prompt: 'a cat' }],
  'edit-image': (model) => ['/v1/images/edits', form({ model, prompt: 'a cat' }, 'image')],
  'vary-image': (model) => ['/v1/images/variations', form({ model }, 'image')],
  transcribe: (model) => ['/v1/audio/transcriptions', form({ model }, 'file')],
  'translate-audio': (model) => ['/v1/audio/translations', form({ model }, 'file')],
  speak: (model) => ['/v1/audio/speech', { model, input: 'Hi', voice: 'alloy' }],
  'create-video': (model) => ['/v1/videos', { model, prompt: 'a cat' }],
};

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

function form(fields: Readonly<Record<string, string>>, file: string): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.set(name, value);
  const isImage = file === 'image';
  made.set(
    file,
    new Blob([isImage ? png : Buffer.from('RIFF\0\0\0\0WAVEfmt ', 'latin1')], {
      type: isImage ? 'image/png' : 'audio/wav',
    }),
    isImage ? 'a.png' : 'a.wav',
  );
  return made;
}

/** Channels that send nothing. */
const silent: ReadonlySet<string> = new Set(['demo']);

/** Options that kinds cannot do without, besides a key and an address. */
const optionsOf = (name: string, tokens: string): object => ({
  ...presets[name]?.options,
  ...(name === 'watsonx' ? { tokenUrl: tokens, project: 'p' } : {}),
});

/** Outcome of a response that is too long. `untried`: the channel does not have the operation, or the gateway performs it itself. */
type Outcome = 'refused' | 'passed on' | 'untried' | `wrong: ${string}`;

async function outcomeOf(answer: Response, requestCount: number): Promise<Outcome> {
  let bytes = 0;
  let text = '';
  for await (const piece of answer.body ?? []) {
    bytes += piece.length;
    if (text.length < 1000) text += Buffer.from(piece).toString('latin1');
    if (bytes > passedOn) return 'passed on';
  }
  if (text.includes('The upstream sent more than ')) return 'refused';
  return requestCount === 0 ? 'untried' : `wrong: ${answer.status} ${text.slice(0, 200)}`;
}

test('a response without end is refused or passed on, by every kind of channel and in every operation', async () => {
  const problems: string[] = [];
  const kinds = (await findChannelKinds(home, problems)).filter(({ spec }) => !silent.has(spec.name));
  expect(problems).toEqual([]);
  const tokens = await startTokenServer();
  let requestCount = 0;
  const provider = await startUpstream(({ method }, response) => {
    // Lists of models are asked for in the background.
    if (method === 'GET') {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    requestCount += 1;
    response.writeHead(200, { 'content-type': 'application/json' });
    void writeLong(response, tooLong, 'text');
  });
  const operations = Object.keys(requests) as Operation[];
  const gateway = await startGateway({
    channels: kinds.map((kind) => {
      const { name } = kind.spec;
      const model = presets[name]?.model ?? 'test-model';
      const models = Object.fromEntries(operations.map((operation) => [`${name}.${operation}`, model]));
      const make = kind as unknown as (options: object) => ChannelEntry;
      return make({
        id: name,
        key: 'k|k',
        baseUrl: `${provider.url}/v1`,
        ...optionsOf(name, tokens.url),
        models,
      });
    }),
    plugins: [translation({ wholeLimit: limit })],
    routing: { attempts: 1 },
    health: { failures: 1000 },
    // A busy machine refuses no call.
    overload: { lag: 600_000 },
  });
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
    await tokens.close();
  });
  const outcomes: Record<string, Outcome> = {};
  for (const { spec } of kinds)
    for (const operation of operations) {
      const before = requestCount;
      const [path, body] = requests[operation]?.(`${spec.name}.${operation}`) ?? ['', {}];
      const isForm = body instanceof FormData;
      // oxlint-disable-next-line no-await-in-loop -- the provider is asked by one at a time
      const answer = await fetch(gateway.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.key}`,
          'anthropic-version': '2023-06-01',
          ...(isForm ? {} : { 'content-type': 'application/json' }),
        },
        body: isForm ? body : JSON.stringify(body),
      });
      // oxlint-disable-next-line no-await-in-loop -- as above
      outcomes[`${spec.name}: ${operation}`] = await outcomeOf(answer, requestCount - before);
    }
  const named = (outcome: string): string[] =>
    Object.keys(outcomes).filter((name) => outcomes[name]?.startsWith(outcome) === true);
  console.log(
    `${kinds.length} kinds: ${named('refused').length} refused, ${named('passed on').length} passed on`,
  );
  expect(named('wrong').map((name) => `${name} ${outcomes[name]}`)).toEqual([]);
  // What is passed on is no JSON that is read here: sound.
  expect(named('passed on').filter((name) => !name.endsWith(': speak'))).toEqual([]);
  expect(named('refused').length).toBeGreaterThan(200);
});
