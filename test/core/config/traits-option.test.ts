import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import { traitsOption } from '../../../core/config/traits-option.ts';
import { channelOf } from '../models/_channels.ts';

const problemsOf = (traits: unknown): readonly string[] =>
  channelOf(
    openaiCompatible({ name: 'mine', baseUrl: 'http://127.0.0.1:9/v1', models: ['m'], traits } as never),
  ).problems;

test.each<[string, unknown, RegExp]>([
  ['a misspelt trait', { m: { reasonin: 'effort' } }, /unknown option "reasonin" in traits\.m/],
  ['a wrong word', { m: { reasoning: 'hard' } }, /traits\.m\.reasoning/],
  ['a number in words', { m: { inputLimit: '128k' } }, /traits\.m\.inputLimit/],
  ['a word in place of a list', { m: { efforts: 'high' } }, /traits\.m\.efforts/],
  [
    'a range of words',
    { m: { ranges: { temperature: { max: 'one' } } } },
    /traits\.m\.ranges\.temperature\.max/,
  ],
])('%s is an error that names the option', (_what, traits, problem) => {
  expect(problemsOf(traits)).toEqual([expect.stringMatching(problem)]);
});

test('right traits are taken, whatever they are about', () => {
  const traits = {
    'm*': {
      reasoning: 'thinking',
      efforts: ['none', 'high'],
      ranges: { temperature: { max: 1 } },
      refusedMembers: ['logit_bias', { path: 'max_tokens', as: 'max_completion_tokens' }],
      images: { delivers: 'url' },
    },
  };
  expect(problemsOf(traits)).toEqual([]);
});

test('every trait that a config may state is in the table of the page for channels', () => {
  const page = readFileSync(new URL('../../../channels/README.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const names = new Set(rows.flatMap((line) => (line.split('|')[1] ?? '').match(/\w+/g) ?? []));
  expect(Object.keys(traitsOption.shape).filter((trait) => !names.has(trait))).toEqual([]);
  for (const member of Object.keys(traitsOption.shape.schemaSubset.unwrap().shape))
    expect(page).toMatch(new RegExp(`\\| \`schemaSubset\`.*\\b${member}\\b`));
});
