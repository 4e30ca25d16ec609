import { describe, expect, test } from 'vitest';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { isAbout } from '../../../core/models/corrections.ts';
import { modelProfile, thinksAtAll } from '../../../core/models/profile.ts';
import anthropic from '../../../channels/anthropic.ts';
import azureOpenai from '../../../channels/azure-openai.ts';
import baseten from '../../../channels/baseten.ts';
import dashscope from '../../../channels/dashscope/index.ts';
import deepseek from '../../../channels/deepseek.ts';
import groq from '../../../channels/groq.ts';
import minimax from '../../../channels/minimax/index.ts';
import moonshot from '../../../channels/moonshot.ts';
import novita from '../../../channels/novita.ts';
import together from '../../../channels/together/index.ts';
import xai from '../../../channels/xai/index.ts';
import zai from '../../../channels/zai.ts';
import openai from '../../../channels/openai.ts';
import { profileOf } from './_channels.ts';

const key = 'k';

describe('the profile of a model', () => {
  const sources = { kind: 'mine', name: 'm', formats: ['chat-completions'], date: '2026-01-01' };

  test('has the limits of the catalogue in place of those of a pattern', () => {
    const defaults: ModelTraits = { inputLimit: 128_000, outputLimit: 16_384, prefill: true };
    const known = { inputLimit: 922_000, outputLimit: 128_000 };
    expect(modelProfile({ ...sources, defaults, known })).toEqual({
      ...known,
      statesOutputLimit: true,
      prefill: true,
    });
  });

  test('sends an effort where the catalogue alone says that the model thinks', () => {
    const known = { can: ['reasoning'] } as const;
    expect(modelProfile({ ...sources, defaults: { reasoning: 'none' }, known })).toEqual({
      reasoning: 'effort',
    });
  });

  test('has the channel kind’s way to think where the catalogue says that the model thinks', () => {
    const known = { can: ['reasoning'] } as const;
    const thinking = { reasoning: 'enable-thinking', thinksByDefault: true } as const;
    expect(modelProfile({ ...sources, defaults: { reasoning: 'none' }, known, thinking })).toEqual(thinking);
  });

  test('keeps what the kind knows of a model that thinks and cannot be told how', () => {
    const defaults = { reasoning: 'none', thinksByDefault: true } as const;
    const known = { can: ['reasoning'] } as const;
    expect(modelProfile({ ...sources, defaults, known })).toEqual(defaults);
    expect(thinksAtAll(defaults)).toBe(true);
  });

  test('does not think where the catalogue says that the model cannot', () => {
    const known = { cannot: ['reasoning'], traits: { efforts: ['low'] } } as const;
    expect(modelProfile({ ...sources, defaults: { reasoning: 'effort' }, known })).toEqual({
      reasoning: 'none',
    });
  });

  test('adds refused settings of the catalogue, and replaces the other traits', () => {
    const defaults: ModelTraits = { reasoning: 'effort', efforts: ['low'], refuses: ['topK'] };
    const known = { traits: { efforts: ['low', 'max'], refuses: ['topK', 'temperature'] } };
    expect(modelProfile({ ...sources, defaults, known })).toEqual({
      reasoning: 'effort',
      efforts: ['low', 'max'],
      refuses: ['topK', 'temperature'],
    });
  });

  test('is served in formats of the catalogue only where the channel speaks them', () => {
    const known = { traits: { formats: ['responses'] } };
    expect(modelProfile({ ...sources, defaults: {}, known })).toEqual({});
    const formats = ['chat-completions', 'responses'];
    expect(modelProfile({ ...sources, formats, defaults: {}, known })).toEqual({ formats: ['responses'] });
  });

  test('says nothing of chat where the model is for something else', () => {
    const known = { operation: 'embed', inputLimit: 8192, can: ['reasoning'] } as const;
    expect(modelProfile({ ...sources, defaults: { reasoning: 'none' }, known })).toEqual({
      reasoning: 'none',
      inputLimit: 8192,
    });
  });

  test('never promises more output than exactly this model has context', () => {
    const known = { inputLimit: 8192 };
    expect(modelProfile({ ...sources, defaults: { outputLimit: 100_000 }, known })).toEqual({
      inputLimit: 8192,
      outputLimit: 8192,
    });
  });
});

test('a correction counts for models that it names, and with a pattern only until a newer catalogue comes', () => {
  const one = { kinds: ['mine'], models: ['a-1', 'b-*'], traits: {}, date: '2026-02-01', source: 'a page' };
  expect(isAbout(one, 'a-1', '2026-09-01')).toBe(true);
  expect(isAbout(one, 'b-1', '2026-02-01')).toBe(true);
  expect(isAbout(one, 'b-1', '2026-02-02')).toBe(false);
  expect(isAbout(one, 'c-1', '2026-01-01')).toBe(false);
});

const { traits: row } = { traits: { refuses: expect.arrayContaining(['temperature', 'topP']) as string[] } };

test.each<[string, ModelTraits, ModelTraits]>([
  [
    'gpt-6-sol of openai',
    profileOf(openai({ key }), 'gpt-6-sol'),
    {
      ...row,
      reasoning: 'effort',
      efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
      systemRole: 'developer',
      inputLimit: 922_000,
      outputLimit: 128_000,
      cacheMark: 'prompt_cache_breakpoint',
    },
  ],
  [
    'gpt-4o of openai',
    profileOf(openai({ key }), 'gpt-4o'),
    { reasoning: 'none', refuses: ['topK', 'customTools'] },
  ],
  [
    'gpt-5-pro of openai',
    profileOf(openai({ key }), 'gpt-5-pro'),
    { ...row, reasoning: 'effort', efforts: ['high'], formats: ['responses'] },
  ],
  [
    'a model of openai that nobody knows yet',
    profileOf(openai({ key }), 'gpt-7-nova'),
    { ...row, reasoning: 'effort', systemRole: 'developer' },
  ],
  [
    'claude-sonnet-4-6',
    profileOf(anthropic({ key }), 'claude-sonnet-4-6'),
    { reasoning: 'adaptive', inputLimit: 1_000_000, outputLimit: 128_000 },
  ],
  [
    'claude-opus-5-5',
    profileOf(anthropic({ key }), 'claude-opus-5-5'),
    {
      ...row,
      reasoning: 'adaptive',
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
      thinksByDefault: true,
      stopsThinking: false,
      forcedTools: 'never',
    },
  ],
  [
    'claude-sonnet-5-5, which cannot be told not to think',
    profileOf(anthropic({ key }), 'claude-sonnet-5-5'),
    { thinksByDefault: true, stopsThinking: false, forcedTools: 'never' },
  ],
  [
    'an Azure deployment whose base model is known',
    profileOf(
      azureOpenai({ key, resource: 'r', models: { fast: { name: 'blue', baseModel: 'openai/gpt-6-sol' } } }),
      'blue',
    ),
    { ...row, reasoning: 'effort', systemRole: 'developer', inputLimit: 922_000 },
  ],
  [
    'grok-4.5',
    profileOf(xai({ key }), 'grok-4.5'),
    { reasoning: 'effort', efforts: ['low', 'medium', 'high'], inputLimit: 500_000 },
  ],
  [
    'grok-4.20, which thinks and takes no effort',
    profileOf(xai({ key }), 'grok-4.20-0309-reasoning'),
    { reasoning: 'none', thinksByDefault: true, stopsThinking: false },
  ],
  [
    'grok-4.20-non-reasoning',
    profileOf(xai({ key }), 'grok-4.20-non-reasoning'),
    { reasoning: 'none', refuses: ['topK', 'presencePenalty', 'frequencyPenalty', 'customTools'] },
  ],
  [
    'kimi-k2.6',
    profileOf(moonshot({ key }), 'kimi-k2.6'),
    {
      ...row,
      reasoning: 'thinking',
      thinksByDefault: true,
      forcedTools: 'without-thinking',
      replaysReasoning: true,
    },
  ],
  [
    'kimi-k3',
    profileOf(moonshot({ key }), 'kimi-k3'),
    { reasoning: 'effort', efforts: ['low', 'high', 'max'], inputLimit: 1_048_576 },
  ],
  ['moonshot-v1-8k', profileOf(moonshot({ key }), 'moonshot-v1-8k'), { reasoning: 'none', inputLimit: 8192 }],
  [
    'deepseek-v4-pro',
    profileOf(deepseek({ key }), 'deepseek-v4-pro'),
    { reasoning: 'thinking', thinksByDefault: true, forcedTools: 'without-thinking', jsonSchema: false },
  ],
  [
    'glm-5.2',
    profileOf(zai({ key }), 'glm-5.2'),
    { reasoning: 'thinking', thinksByDefault: true, forcedTools: 'never', inputLimit: 1_000_000 },
  ],
  ['glm-5.3', profileOf(zai({ key }), 'glm-5.3'), { reasoning: 'effort', stopsThinking: false }],
  [
    'qwen3-32b of DashScope, which refuses whole requests that let it think',
    profileOf(dashscope({ key }), 'qwen3-32b'),
    { reasoning: 'enable-thinking', thinksByDefault: true, thinksInStreamsOnly: true },
  ],
  [
    'qwen3.5-plus of DashScope',
    profileOf(dashscope({ key }), 'qwen3.5-plus'),
    { reasoning: 'enable-thinking', thinkingBudget: { min: 1 }, thinksByDefault: true, inputLimit: 991_808 },
  ],
  ['qwen-plus of DashScope', profileOf(dashscope({ key }), 'qwen-plus'), { reasoning: 'enable-thinking' }],
  [
    'MiniMax-M3',
    profileOf(minimax({ key }), 'MiniMax-M3'),
    { reasoning: 'thinking', thinkingType: 'adaptive', thinksByDefault: true, inputLimit: 1_000_000 },
  ],
  [
    'MiniMax-M2.5, which always thinks',
    profileOf(minimax({ key }), 'MiniMax-M2.5'),
    { reasoning: 'none', thinksByDefault: true, stopsThinking: false },
  ],
  [
    'Kimi K2.6 of Together',
    profileOf(together({ key }), 'moonshotai/Kimi-K2.6'),
    { reasoning: 'object', thinksByDefault: true, reasoningField: 'reasoning' },
  ],
  [
    'GLM 5.2 of Baseten, which thinks when its template is told to',
    profileOf(baseten({ key }), 'zai-org/GLM-5.2'),
    { reasoning: 'template', templateMember: 'chat_template_args', thinksByDefault: false },
  ],
  [
    'GLM 4.5 of Novita',
    profileOf(novita({ key }), 'zai-org/glm-4.5'),
    { reasoning: 'enable-thinking', thinksByDefault: true },
  ],
  [
    'Qwen3 of Groq',
    profileOf(groq({ key }), 'qwen/qwen3-32b'),
    { reasoning: 'effort', efforts: ['none'], thinksByDefault: true, refusesUnknown: true },
  ],
  [
    'a Llama of Groq',
    profileOf(groq({ key }), 'llama-3.3-70b-versatile'),
    { reasoning: 'none', refusesUnknown: true },
  ],
])('the profile of %s', (_name, profile, expected) => {
  expect(profile).toMatchObject(expected);
});
