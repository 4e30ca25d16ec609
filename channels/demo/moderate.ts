import { isObject, type JsonObject } from 'sluice';
import type { ModerationRequest } from 'sluice/channel-kit';
import { wordsIn } from './embed.ts';
import type { DemoOperation } from './demo-operation.ts';

/** Categories, and the word that the demo takes offence at in each. */
const offences: Readonly<Record<string, string>> = {
  harassment: 'insult',
  hate: 'hate',
  illicit: 'steal',
  'self-harm': 'selfharm',
  sexual: 'sex',
  violence: 'kill',
};

/** Flags what holds one of a few words. */
export const moderate: DemoOperation<ModerationRequest> = {
  speaks: ['moderations'],
  text: ({ inputs }) => inputs.map(textOf).join(' '),
  answer: ({ inputs }) => [
    {
      type: 'result',
      // Parts of one input get one verdict together, texts one each.
      value: {
        results: inputs.some(isObject) ? [verdict(inputs.map(textOf).join(' '))] : inputs.map(verdictOf),
      },
    },
  ],
};

function textOf(input: string | JsonObject): string {
  if (typeof input === 'string') return input;
  return typeof input.text === 'string' ? input.text : '';
}

function verdictOf(input: string | JsonObject): JsonObject {
  return verdict(textOf(input));
}

function verdict(text: string): JsonObject {
  const words = new Set(wordsIn(text));
  const found = Object.entries(offences).map(([category, word]) => [category, words.has(word)] as const);
  return {
    flagged: found.some(([, hit]) => hit),
    categories: Object.fromEntries(found),
    category_scores: Object.fromEntries(found.map(([category, hit]) => [category, hit ? 0.9 : 0.01])),
    category_applied_input_types: Object.fromEntries(found.map(([category]) => [category, ['text']])),
  };
}
