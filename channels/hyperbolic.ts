import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Hyperbolic. https://docs.hyperbolic.xyz/docs/rest-api */
export default openaiLike({
  name: 'hyperbolic',
  catalogue: ['hyperbolic'],
  baseUrl: 'https://api.hyperbolic.xyz/v1',
  models: ['*/*'],
  discover: true,
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    'deepseek-ai/DeepSeek-R1*': { inlineThinking: true, thinksByDefault: true, stopsThinking: false },
  },
});
