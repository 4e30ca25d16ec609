import { openaiLike } from './_openai-like.ts';

/** Zhipu AI (BigModel), the same models in China. https://docs.bigmodel.cn/api-reference */
export default openaiLike({
  name: 'zhipu',

  catalogue: ['bigmodel'],
  baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
  models: ['glm-*', 'embedding-*'],
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
