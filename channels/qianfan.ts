import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Baidu Qianfan: ERNIE and others. https://cloud.baidu.com/doc/qianfan-api/s/3m7of64lb */
export default openaiLike({
  name: 'qianfan',
  baseUrl: 'https://qianfan.baidubce.com/v2',
  models: ['ernie-*', 'deepseek-*', 'qwen*', 'bge-*', 'tao-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  // https://github.com/lobehub/lobehub, model-runtime/src/providers/wenxin: budgets within this range.
  openModels: { reasoning: 'enable-thinking', thinkingBudget: { min: 100, max: 16_384 } },
  traits: {
    '*': {
      reasoning: 'none',
      ranges: { seed: { min: 1, max: 2_147_483_646 } },
      refuses: ['choices', 'logprobs', 'topLogprobs', 'topK'],
    },
    'ernie-*': {
      // Turns of the user and the assistant come in turn, and so do calls and their results.
      alternates: true,
      midSystem: false,
      parallelHistory: false,
      // github:langgenius/dify#5572: above 0, and no more than 1.
      ranges: { temperature: { min: 0.01, max: 1 }, seed: { min: 1, max: 2_147_483_646 } },
    },
    'ernie-x*': { ...thinksAlike, refuses: ['choices', 'logprobs', 'topLogprobs', 'topK', 'stop', 'seed'] },
    'ernie-*-thinking*': thinksAlike,
  },
});
