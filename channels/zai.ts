import { openaiLike } from './_openai-like.ts';

/** Z.ai, outside China. GLM from 4.5 on thinks unless `thinking` is off. https://docs.z.ai/api-reference/llm/chat-completion */
export default openaiLike({
  name: 'zai',

  catalogue: ['zai'],
  baseUrl: 'https://api.z.ai/api/paas/v4',
  models: ['glm-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
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
  },
});
