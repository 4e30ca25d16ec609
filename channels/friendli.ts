import { openaiLike } from './_openai-like.ts';

/** Friendli serverless endpoints. https://friendli.ai/docs/openapi/serverless/chat-completions */
export default openaiLike({
  name: 'friendli',
  catalogue: ['friendliai'],
  baseUrl: 'https://api.friendli.ai/serverless/v1',
  models: 'discover',
  traits: { '*': { reasoning: 'none', outputLimitField: 'max_tokens' } },
});
