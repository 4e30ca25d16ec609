import { glmMessages, glmTraits } from './_kit/dialect/glm.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Z.ai, outside China. GLM from 4.5 on thinks unless `thinking` is off. https://docs.z.ai/api-reference/llm/chat-completion */
export default openaiLike({
  name: 'zai',
  catalogue: ['zai'],
  baseUrl: 'https://api.z.ai/api/paas/v4',
  models: ['glm-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  messages: glmMessages,
  traits: glmTraits,
});
