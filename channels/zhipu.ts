import { glmMessages, glmTraits } from './_kit/dialect/glm.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Zhipu AI (BigModel), the same models in China. https://docs.bigmodel.cn/api-reference */
export default openaiLike({
  name: 'zhipu',
  catalogue: ['bigmodel'],
  baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
  models: ['glm-*', 'embedding-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  // Endpoints of version 4. https://docs.bigmodel.cn/cn/faq/batch-api-issues
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  messages: glmMessages,
  traits: glmTraits,
});
