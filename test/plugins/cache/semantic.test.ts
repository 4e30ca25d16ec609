import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import openai from '../../../channels/openai.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import cache from '../../../plugins/cache/index.ts';
import { VectorIndex } from '../../../plugins/cache/semantic/vectors.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';
import { ask } from './_clients.ts';
import { formats, startProvider, usual, type Provider } from './_provider.ts';
import { chat } from './_started.ts';

/** Vectors of questions; those that mean the same are near each other. */
const vectors: Readonly<Record<string, readonly number[]>> = {
  'How do I cancel?': [1, 0, 0.05],
  'How can I cancel?': [1, 0.01, 0],
  'What does it cost?': [0, 1, 0],
};

let embedder: ScriptedUpstream;
let isDown = false;

/** A gateway whose embeddings come from one provider, and its answers from another. */
async function started(options: object = {}): Promise<{ gateway: TestGateway; provider: Provider }> {
  embedder = await startUpstream(({ body }, response: ServerResponse) => {
    const { input } = JSON.parse(body.toString()) as { input: string };
    if (isDown) {
      response.writeHead(500).end('{}');
      return;
    }
    const embedding = vectors[input] ?? [0, 0, 1];
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        object: 'list',
        model: 'e',
        data: [{ object: 'embedding', index: 0, embedding }],
        usage: { prompt_tokens: 4, total_tokens: 4 },
      }),
    );
  });
  onTestFinished(() => embedder.close());
  let count = 0;
  const provider = await startProvider('chat-completions', () => usual(`Answer ${(count += 1)}.`));
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    plugins: [cache({ semantic: { model: 'e', threshold: 0.95, ...options } })],
    channels: [
      provider.channel,
      openai({ id: 'embedder', key: 'k', baseUrl: `${embedder.url}/v1`, models: ['e'] }),
    ],
    prices: { m: { input: 1, output: 1 }, e: { input: 1, output: 0 } },
  });
  onTestFinished(() => gateway.close());
  return { gateway, provider };
}

beforeEach(() => {
  isDown = false;
});

const asked = (content: string, more: object = {}): object => ({
  messages: [{ role: 'user', content }],
  ...more,
});

describe('a question that means the same', () => {
  test.each(formats)('has the same answer for clients of %s, whole and streamed', async (format) => {
    const { gateway, provider } = await started();
    expect(await ask(format, gateway, { text: 'How do I cancel?' })).toMatchObject({
      text: 'Answer 1.',
      cache: 'miss',
    });
    for (const stream of [false, true])
      expect(await ask(format, gateway, { text: 'How can I cancel?', stream })).toMatchObject({
        text: 'Answer 1.',
        cache: 'hit',
      });
    expect((await ask(format, gateway, { text: 'What does it cost?' })).text).toBe('Answer 2.');
    expect(provider.requests).toHaveLength(2);
  });

  test('has another answer with other instructions, turns, tools, settings or keys', async () => {
    const { gateway, provider } = await started();
    await chat(gateway, asked('How do I cancel?'));
    const other = await gateway.apiKeys.create({ name: 'other' });
    const tool = { type: 'function', function: { name: 'x', parameters: { type: 'object' } } };
    const user = { role: 'user', content: 'How can I cancel?' };
    const misses = [
      await chat(gateway, asked('How can I cancel?', { temperature: 0.5 })),
      await chat(gateway, asked('How can I cancel?', { tools: [tool] })),
      await chat(gateway, { messages: [{ role: 'system', content: 'Be brief.' }, user] }),
      await chat(gateway, {
        messages: [{ role: 'user', content: 'Hi.' }, { role: 'assistant', content: 'Hi.' }, user],
      }),
      await chat({ ...gateway, key: other.value }, asked('How can I cancel?')),
    ];
    expect(misses.map((one) => one.cache)).toEqual(misses.map(() => 'miss'));
    expect(provider.requests).toHaveLength(6);
    expect((await chat(gateway, asked('How can I cancel?'))).cache).toBe('hit');
  });

  test('is embedded at the cost of the caller, or of nobody', async () => {
    for (const chargeTo of ['caller', 'operator']) {
      // oxlint-disable-next-line no-await-in-loop -- one gateway after the other
      const { gateway } = await started({ chargeTo });
      await chat(gateway, asked('How do I cancel?'));
      const usageLog = openUsageLog(gateway.stores);
      const records = async () => (await usageLog.page({ channel: 'embedder' }, 10)).records;
      await eventually(async () => (await records()).length === 1);
      const [record] = await records();
      expect([record?.input, record?.keyId !== undefined]).toEqual([4, chargeTo === 'caller']);
    }
  });
});

test('while the model that embeds fails calls are answered, have exact hits, and the log says so once', async () => {
  const { gateway, provider } = await started();
  isDown = true;
  for (const [question, expected] of [
    ['How do I cancel?', 'miss'],
    ['How can I cancel?', 'miss'],
    ['How can I cancel?', 'hit'],
  ] as const)
    expect((await chat(gateway, asked(question))).cache).toBe(expected);
  expect(provider.requests).toHaveLength(2);
  const told = gateway.lines.filter(({ msg }) => String(msg).includes('could not be embedded'));
  expect(told).toHaveLength(1);
});

describe('the index of vectors', () => {
  test('finds the nearest of a partition, and forgets the oldest where there are too many', async () => {
    const index = await VectorIndex.open(2, 3);
    onTestFinished(() => index.close());
    const at = (...values: readonly number[]): Float32Array => Float32Array.from(values);
    expect(index.nearest('p', at(1, 0))).toBeUndefined();
    index.add('p', at(1, 0), 'one');
    index.add('p', at(0, 1), 'two');
    index.add('q', at(1, 0), 'other');
    expect(index.nearest('p', at(0.9, 0.1))?.digest).toBe('one');
    expect(index.nearest('p', at(1, 0))?.similarity).toBeCloseTo(1);
    // Vectors of another length are those of another model.
    expect(index.nearest('p', at(1, 0, 0))).toBeUndefined();
    // Nothing is near to nothing.
    expect(index.nearest('p', at(0, 0))).toBeUndefined();
    index.add('p', at(-1, 0), 'three');
    expect(index.nearest('p', at(1, 0))?.digest).not.toBe('one');
    expect(index.nearest('q', at(1, 0))?.digest).toBe('other');
    index.add('r', at(1, 0), 'four');
    index.add('r', at(0, 1), 'five');
    index.add('s', at(0, 1), 'six');
    expect(index.nearest('q', at(1, 0))).toBeUndefined();
    index.forget('six');
    expect(index.nearest('s', at(0, 1))).toBeUndefined();
    index.clear();
    expect(index.nearest('r', at(0, 1))).toBeUndefined();
  });
});
