import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import { VectorIndex } from '../../../plugins/cache/semantic/vectors.ts';
import { eventually } from '../../support/eventually.ts';
import { sendAndRead } from './_clients.ts';
import { formats } from './_provider.ts';
import { chatBody, embedding, started } from './_semantic.ts';
import { chat } from './_started.ts';

beforeEach(() => {
  embedding.isDown = false;
});

describe('a question that means the same', () => {
  test.each(formats)('has the same answer for clients of %s, whole and streamed', async (format) => {
    const { gateway, provider } = await started();
    expect(await sendAndRead(format, gateway, { text: 'How do I cancel?' })).toMatchObject({
      text: 'Answer 1.',
      cache: 'miss',
    });
    for (const stream of [false, true])
      expect(await sendAndRead(format, gateway, { text: 'How can I cancel?', stream })).toMatchObject({
        text: 'Answer 1.',
        cache: 'hit',
      });
    expect((await sendAndRead(format, gateway, { text: 'What does it cost?' })).text).toBe('Answer 2.');
    expect(provider.requests).toHaveLength(2);
  });

  test('has another answer with other instructions, turns, tools, settings or keys', async () => {
    const { gateway, provider } = await started();
    await chat(gateway, chatBody('How do I cancel?'));
    const other = await gateway.apiKeys.create({ name: 'other' });
    const tool = { type: 'function', function: { name: 'x', parameters: { type: 'object' } } };
    const user = { role: 'user', content: 'How can I cancel?' };
    const misses = [
      await chat(gateway, chatBody('How can I cancel?', { temperature: 0.5 })),
      await chat(gateway, chatBody('How can I cancel?', { tools: [tool] })),
      await chat(gateway, { messages: [{ role: 'system', content: 'Be brief.' }, user] }),
      await chat(gateway, {
        messages: [{ role: 'user', content: 'Hi.' }, { role: 'assistant', content: 'Hi.' }, user],
      }),
      await chat({ ...gateway, key: other.value }, chatBody('How can I cancel?')),
    ];
    expect(misses.map((one) => one.cache)).toEqual(misses.map(() => 'miss'));
    expect(provider.requests).toHaveLength(6);
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
  });

  test('has the same answer with its age, and only if a client takes one so old', async () => {
    const { gateway, provider } = await started();
    await chat(gateway, chatBody('How do I cancel?'));
    await eventually(async () => {
      const hit = await chat(gateway, chatBody('How do I cancel?'));
      return Number(hit.headers.get('age')) >= 1;
    });
    const question = chatBody('How can I cancel?');
    const hit = await chat(gateway, question);
    expect([hit.cache, Number(hit.headers.get('age')) >= 1]).toEqual(['hit', true]);
    expect((await chat(gateway, question, { 'cache-control': 'max-age=0' })).cache).toBe('miss');
    expect(provider.requests).toHaveLength(2);
  });

  test('is embedded at the cost of the caller, or of nobody', async () => {
    for (const chargeTo of ['caller', 'operator']) {
      // oxlint-disable-next-line no-await-in-loop -- one gateway after the other
      const { gateway } = await started({ chargeTo });
      await chat(gateway, chatBody('How do I cancel?'));
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
  embedding.isDown = true;
  for (const [question, expected] of [
    ['How do I cancel?', 'miss'],
    ['How can I cancel?', 'miss'],
    ['How can I cancel?', 'hit'],
  ] as const)
    expect((await chat(gateway, chatBody(question))).cache).toBe(expected);
  expect(provider.requests).toHaveLength(2);
  const failureLines = gateway.lines.filter(({ msg }) => String(msg).includes('could not be embedded'));
  expect(failureLines).toHaveLength(1);
});

describe('the index of vectors', () => {
  test('finds the nearest of a partition, and forgets the oldest where there are too many', async () => {
    const index = await VectorIndex.open(2, 3);
    onTestFinished(() => index.close());
    const question = (partition: string, ...values: readonly number[]) => ({
      partition,
      vector: Float32Array.from(values),
    });
    expect(index.nearest(question('p', 1, 0))).toBeUndefined();
    index.add(question('p', 1, 0), { digest: 'one' });
    index.add(question('p', 0, 1), { digest: 'two' });
    index.add(question('q', 1, 0), { digest: 'other' });
    expect(index.nearest(question('p', 0.9, 0.1))?.digest).toBe('one');
    expect(index.nearest(question('p', 1, 0))?.similarity).toBeCloseTo(1);
    // Vectors of another length are those of another model.
    expect(index.nearest(question('p', 1, 0, 0))).toBeUndefined();
    // Nothing is near to nothing.
    expect(index.nearest(question('p', 0, 0))).toBeUndefined();
    index.add(question('p', -1, 0), { digest: 'three' });
    expect(index.nearest(question('p', 1, 0))?.digest).not.toBe('one');
    expect(index.nearest(question('q', 1, 0))?.digest).toBe('other');
    index.add(question('r', 1, 0), { digest: 'four' });
    index.add(question('r', 0, 1), { digest: 'five' });
    index.add(question('s', 0, 1), { digest: 'six' });
    expect(index.nearest(question('q', 1, 0))).toBeUndefined();
    index.forget('six');
    expect(index.nearest(question('s', 0, 1))).toBeUndefined();
    index.clear();
    expect(index.nearest(question('r', 0, 1))).toBeUndefined();
  });
});
