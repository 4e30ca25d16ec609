import { thinksAlike } from './_open-models.ts';
import { openaiLike } from './_openai-like.ts';

/** GitHub Models: `vendor/model`, with a token that has `models: read`. https://docs.github.com/en/rest/models/inference */
export default openaiLike({
  name: 'github-models',
  catalogue: ['github'],
  baseUrl: 'https://models.github.ai/inference',
  models: ['*/*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
    // Azure AI answers 400 to members that it does not know (`extra_parameters`).
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      refusedMembers: ['prompt_cache_key', 'top_k'],
      refuses: ['topK'],
      cacheMark: 'none',
    },
    'deepseek/deepseek-r1*': { ...thinksAlike, inlineThinking: true },
    'microsoft/*reasoning*': { ...thinksAlike, inlineThinking: true },
    'openai/o*': {
      reasoning: 'effort',
      efforts: ['low', 'medium', 'high'],
      outputLimitField: 'max_completion_tokens',
    },
    'openai/gpt-5*': {
      reasoning: 'effort',
      outputLimitField: 'max_completion_tokens',
      systemRole: 'developer',
    },
    'openai/gpt-5-chat*': { reasoning: 'none', systemRole: 'system' },
  },
});
