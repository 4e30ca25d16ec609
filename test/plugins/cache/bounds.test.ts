import { reply, testPlugins, text } from 'sluice/testing';
import { expect, onTestFinished, test } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import { compactJson } from '../../../plugins/cache/compact-json.ts';
import { eventually } from '../../support/eventually.ts';
import { call } from './_calls.ts';
import { running, startedByHand } from './_held.ts';
import { usual } from './_provider.ts';

const hit = (headers: Readonly<Record<string, string>>): string | undefined => headers['x-sluice-cache'];

/** Plugins under test, closed in the end. */
async function tested(options: Parameters<typeof cache>[0]) {
  const plugins = await testPlugins(cache(options));
  onTestFinished(() => plugins.close());
  return plugins;
}

test('with memoryBytes: 0 the database alone gives hits', async () => {
  const plugins = await tested({ memoryBytes: 0 });
  await plugins.run('What is new?', { reply: 'Nothing.' });
  const again = async () => hit((await plugins.run('What is new?', { reply: 'Something.' })).headers);
  expect(await eventually(async () => (await again()) === 'hit')).toBe(true);
});

test('with memoryBytes: 0 and no database equal calls at once still share one request', async () => {
  const release = Promise.withResolvers<void>();
  const { gateway, provider } = await startedByHand({ memoryBytes: 0, databaseEntries: 0 }, async () => {
    await release.promise;
    return usual();
  });
  const calls = Array.from({ length: 5 }, () => call(gateway));
  await running(gateway, 5);
  release.resolve();
  for (const { body } of calls) expect(await body).toContain('Hello there.');
  expect(provider.requests).toHaveLength(1);
});

test.each([
  ['singleFlight: false', { singleFlight: false }, {}],
  ['no-cache', {}, { 'cache-control': 'no-cache' }],
])(
  'with %s a response beyond memoryBytes is not recorded, and a short one behind it is',
  async (_how, options, headers) => {
    const plugins = await tested({ ...options, memoryBytes: 4_096 });
    const callWith = (question: string) => ({ messages: [question], headers });
    const long = reply(text(...Array.from({ length: 10 }, () => 'x'.repeat(1_000))));
    await plugins.run(callWith('A long story?'), { reply: long });
    await plugins.run(callWith('A short story?'), { reply: 'The end.' });
    await eventually(
      async () => hit((await plugins.run('A short story?', { reply: 'Another.' })).headers) === 'hit',
    );
    expect(hit((await plugins.run('A long story?', { reply: 'Another.' })).headers)).toBe('miss');
  },
);

test.each(['"', '\\', 'n'])(
  'JSON with millions of escapes (%s) loses its white space outside of strings alone',
  (escaped) => {
    const string = JSON.stringify(` a ${'x'.repeat(10)} `).slice(0, -1) + `\\${escaped}`.repeat(4_000_000);
    expect(compactJson(`{ "a" :\t[ ${string}",\r\n1.50 ] }`)).toBe(`{"a":[${string}",1.50]}`);
  },
);
