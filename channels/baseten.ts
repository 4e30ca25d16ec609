import { openaiLike } from './_openai-like.ts';

/** Baseten model APIs. https://docs.baseten.co/reference/inference-api/chat-completions */
export default openaiLike({
  name: 'baseten',
  catalogue: ['baseten'],
  baseUrl: 'https://inference.baseten.co/v1',
  models: ['*/*'],
  discover: true,
  traits: { '*': { reasoning: 'none', outputLimitField: 'max_tokens' } },
});
