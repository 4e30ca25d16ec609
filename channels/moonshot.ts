import { openaiLike } from './_openai-like.ts';

/** Moonshot AI: Kimi. In China, `baseUrl: 'https://api.moonshot.cn/v1'`. Thinking models want their reasoning back. https://platform.moonshot.ai/docs/api/chat */
export default openaiLike({
  name: 'moonshot',
  catalogue: ['moonshot'],
  baseUrl: 'https://api.moonshot.ai/v1',
  models: ['kimi-*', 'moonshot-*'],
  // https://platform.kimi.ai/docs/api/batch-create https://platform.kimi.ai/docs/pricing/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.6,
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      replaysReasoning: true,
      refuses: ['topK', 'logprobs', 'topLogprobs', 'seed'],
      inputLimit: 262_144,
    },
    'moonshot-v1-8k*': { inputLimit: 8192 },
    'moonshot-v1-32k*': { inputLimit: 32_768 },
    'moonshot-v1-128k*': { inputLimit: 131_072 },
  },
});
