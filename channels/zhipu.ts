import { glmTraits } from './_glm.ts';
import { openaiLike } from './_openai-like.ts';

/** Zhipu AI (BigModel), the same models in China. https://docs.bigmodel.cn/api-reference */
export default openaiLike({
  name: 'zhipu',
  catalogue: ['bigmodel'],
  baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
  models: ['glm-*', 'embedding-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: glmTraits,
});
