import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import deepseek from '../../../channels/deepseek.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import { traitsOption, withStated } from '../../../core/config/traits-option.ts';
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

describe('what the config states of a model', () => {
  const known = {
    reasoning: 'thinking',
    refuses: ['seed'],
    formats: ['chat-completions', 'responses', 'messages'],
    byFormat: {
      responses: { reasoning: 'effort', keepsResponses: false, refuses: ['customTools'] },
      messages: { midSystem: false },
    },
  } as const;

  test('holds in every format of the channel, beside what a format refuses anyway', () => {
    expect(withStated(known, ['m*'], { refuses: ['stop'], jsonSchema: false })).toEqual({
      ...known,
      refuses: ['stop'],
      jsonSchema: false,
      byFormat: {
        responses: {
          reasoning: 'effort',
          keepsResponses: false,
          refuses: ['customTools', 'stop'],
          jsonSchema: false,
        },
        messages: { midSystem: false, refuses: ['stop'], jsonSchema: false },
      },
    });
  });

  test('of thinking, only where the format has that word', () => {
    const { reasoning, byFormat } = withStated(known, ['m'], { reasoning: 'template' });
    expect([reasoning, byFormat?.['responses']?.reasoning, byFormat?.['messages']?.reasoning]).toEqual([
      'template',
      'effort',
      undefined,
    ]);
    expect(withStated(known, ['m'], { reasoning: 'none' }).byFormat).toMatchObject({
      responses: { reasoning: 'none' },
      messages: { reasoning: 'none' },
    });
  });

  test('for one format comes last, and leaves the others', () => {
    const stated = { midSystem: true, byFormat: { messages: { midSystem: false } } };
    expect(withStated(known, ['m'], stated).byFormat).toMatchObject({
      responses: { keepsResponses: false, midSystem: true },
      messages: { midSystem: false },
    });
  });

  test('reaches the channel: a model of DeepSeek refuses in Responses what the config says', () => {
    const { channel } = channelOf(
      deepseek({ key: 'k', models: ['deepseek-v4-flash'], traits: { 'deepseek*': { refuses: ['stop'] } } }),
    );
    const { refuses, byFormat } = channel?.traits('deepseek-v4-flash') ?? {};
    expect(refuses).toContain('stop');
    expect(byFormat?.['responses']?.refuses).toEqual(expect.arrayContaining(['stop', 'customTools']));
    expect(byFormat?.['messages']?.refuses).toContain('stop');
  });
});
