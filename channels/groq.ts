import { openaiLike } from './_openai-like.ts';

/** Groq. It answers 400 to log probabilities and to more than one choice. */
export default openaiLike({
  name: 'groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  models: ['openai/gpt-oss-*', 'llama-*', 'meta-llama/*', 'qwen/*', 'moonshotai/*', 'groq/*'],
  traits: {
    '*': { reasoning: 'none', refuses: ['logprobs', 'topLogprobs', 'choices'], inputLimit: 131_072 },
    'openai/gpt-oss-*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'], outputLimit: 65_536 },
  },
});
