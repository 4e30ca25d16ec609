import { openaiLike } from './_openai-like.ts';

/** Fireworks AI: models are paths, `accounts/fireworks/models/NAME`. https://docs.fireworks.ai/tools-sdks/openai-compatibility */
export default openaiLike({
  name: 'fireworks',
  catalogue: ['fireworks_ai', 'fireworks_ai-embedding-models'],
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  models: ['accounts/*', 'nomic-ai/*'],
  discover: true,
  speaks: {
    chat: ['chat-completions', 'responses', 'text-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
  },
  traits: {
    '*': {
      formats: ['chat-completions'],
      outputLimitField: 'max_tokens',
      efforts: ['none', 'low', 'medium', 'high'],
    },
  },
});
