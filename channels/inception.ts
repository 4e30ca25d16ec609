import { openaiLike } from './_openai-like.ts';

/** Inception: Mercury. https://docs.inceptionlabs.ai/get-started/get-started */
export default openaiLike({
  name: 'inception',
  catalogue: ['inception'],
  baseUrl: 'https://api.inceptionlabs.ai/v1',
  models: ['mercury*'],
  traits: { '*': { reasoning: 'none', outputLimitField: 'max_tokens' } },
});
