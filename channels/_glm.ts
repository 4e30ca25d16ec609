import type { ModelTraits } from 'sluice';

/** What GLM can do, at both addresses where it is served. */
export const glmTraits: Readonly<Record<string, ModelTraits>> = {
  '*': {
    reasoning: 'thinking',
    efforts: ['none', 'high'],
    outputLimitField: 'max_tokens',
    replaysReasoning: true,
    jsonSchema: false,
    refuses: [
      'choices',
      'logprobs',
      'topLogprobs',
      'seed',
      'frequencyPenalty',
      'presencePenalty',
      'verbosity',
    ],
    inputLimit: 200_000,
    outputLimit: 131_072,
  },
  'glm-4-*': { reasoning: 'none', inputLimit: 128_000, outputLimit: 4095 },
};
