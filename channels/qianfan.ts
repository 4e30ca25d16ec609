import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Baidu Qianfan: ERNIE and others. https://cloud.baidu.com/doc/qianfan-api/s/3m9b5lqft */
export default openaiLike({
  name: 'qianfan',
  baseUrl: 'https://qianfan.baidubce.com/v2',
  models: ['ernie-*', 'deepseek-*', 'qwen*', 'bge-*', 'tao-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  // https://cloud.baidu.com/doc/qianfan-api/s/3m9b5lqft
  openModels: { reasoning: 'enable-thinking' },
  traits: {
    '*': { reasoning: 'none', refuses: ['choices', 'logprobs', 'topLogprobs', 'topK'] },
    'ernie-x*': thinksAlike,
    'ernie-*-thinking*': thinksAlike,
  },
});
