import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Friendli serverless endpoints. https://friendli.ai/docs/openapi/serverless/chat-completions */
export default openaiLike({
  name: 'friendli',
  catalogue: ['friendliai'],
  baseUrl: 'https://api.friendli.ai/serverless/v1',
  models: 'discover',
  // https://friendli.ai/docs/guides/reasoning
  openModels: { reasoning: 'template' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    '*GLM-5.2*': { reasoning: 'effort', efforts: ['high', 'max'] },
    '*GLM-5.3*': { reasoning: 'effort', efforts: ['low', 'high', 'max'] },
  },
});
