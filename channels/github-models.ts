import { openaiLike } from './_openai-like.ts';

/** GitHub Models: `vendor/model`, with a token that has `models: read`. https://docs.github.com/en/rest/models/inference */
export default openaiLike({
  name: 'github-models',
  catalogue: ['github'],
  baseUrl: 'https://models.github.ai/inference',
  models: ['*/*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens', cacheMark: 'none' },
    'openai/o*': {
      reasoning: 'effort',
      efforts: ['low', 'medium', 'high'],
      outputLimitField: 'max_completion_tokens',
    },
    'openai/gpt-5*': { reasoning: 'effort', outputLimitField: 'max_completion_tokens' },
  },
});
