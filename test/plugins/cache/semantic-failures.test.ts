import { definePlugin, isChat } from 'sluice';
import { expect, onTestFinished, test, vi } from 'vitest';
import { SemanticIndex } from '../../../plugins/cache/semantic/index.ts';
import { VectorIndex } from '../../../plugins/cache/semantic/vectors.ts';
import { chatBody, started } from './_semantic.ts';
import { chat, post } from './_started.ts';

test('a setting that is ignored does not separate questions', async () => {
  const { gateway, provider } = await started({}, { plugin: { ignore: ['metadata'] } });
  expect((await chat(gateway, chatBody('How do I cancel?', { metadata: { x: '1' } }))).cache).toBe('miss');
  expect((await chat(gateway, chatBody('How can I cancel?', { metadata: { x: '2' } }))).cache).toBe('hit');
  expect(provider.requests).toHaveLength(1);
});

test('numbers in a setting that is ignored do not end the worker', async () => {
  // No format lets a client send such a number, but a plugin may add one.
  const numbering = definePlugin({
    name: 'numbering',
    stage: 'shape',
    before: ['cache'],
    setup: () => (call, next) => {
      const { request } = call;
      if (!isChat(request)) return next(call);
      return next(call.with({ settings: { ...request.settings, metadata: { x: 2 ** 60 } } }));
    },
  });
  const { gateway, provider } = await started(
    {},
    { plugin: { ignore: ['metadata'] }, plugins: [numbering()] },
  );
  expect((await chat(gateway, chatBody('How do I cancel?'))).cache).toBe('miss');
  expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
  expect(provider.requests).toHaveLength(1);
});

test('a call whose flight cannot begin fails like any other, and so do those that joined it', async () => {
  const spy = vi.spyOn(SemanticIndex.prototype, 'embed').mockRejectedValue(new Error('broken'));
  onTestFinished(() => spy.mockRestore());
  const { gateway } = await started();
  const calls = [1, 2, 3].map(() => chat(gateway, chatBody('How do I cancel?')));
  for (const { status } of await Promise.all(calls)) expect(status).toBe(500);
});

test.each(['nearest', 'add'] as const)(
  'an index of vectors whose %s throws is a miss, and the log says so',
  async (method) => {
    const spy = vi.spyOn(VectorIndex.prototype, method).mockImplementation(() => {
      throw new Error('The index is broken.');
    });
    onTestFinished(() => spy.mockRestore());
    const { gateway, provider } = await started({ store: 'memory' });
    for (const question of ['How do I cancel?', 'How can I cancel?'])
      expect(await chat(gateway, chatBody(question))).toMatchObject({ status: 200, cache: 'miss' });
    expect(provider.requests).toHaveLength(2);
    expect(gateway.lines.filter(({ msg }) => String(msg).includes('index of questions'))).toHaveLength(1);
  },
);

test('a vector that is longer than a database keeps is reported', async () => {
  const { gateway } = await started();
  expect((await chat(gateway, chatBody('What is too long?'))).cache).toBe('miss');
  expect(gateway.lines.filter(({ msg }) => String(msg).includes('could not be embedded'))).toHaveLength(1);
});

test('a response to a question in another format tells no losses in the words of that format', async () => {
  const { gateway, provider } = await started({}, { format: 'messages' });
  const first = await chat(gateway, chatBody('How do I cancel?', { frequency_penalty: 0.5 }));
  expect(first.headers.get('x-sluice-loss')).toContain('frequency_penalty');
  const second = await post(gateway, '/v1beta/models/m:generateContent', {
    contents: [{ role: 'user', parts: [{ text: 'How can I cancel?' }] }],
    generationConfig: { frequencyPenalty: 0.5 },
  });
  expect([second.status, second.cache]).toEqual([200, 'hit']);
  expect(second.headers.get('x-sluice-loss') ?? '').not.toContain('frequency_penalty');
  // A client of the first format is told the losses again.
  const third = await chat(gateway, chatBody('Could I cancel?', { frequency_penalty: 0.5 }));
  expect([third.cache, third.headers.get('x-sluice-loss')]).toEqual([
    'hit',
    first.headers.get('x-sluice-loss'),
  ]);
  expect(provider.requests).toHaveLength(1);
});
