import { openaiLike } from './_kit/dialect/openai-like.ts';

/** DeepInfra. https://deepinfra.com/docs/openai_api */
export default openaiLike({
  name: 'deepinfra',
  catalogue: ['deepinfra'],
  baseUrl: 'https://api.deepinfra.com/v1/openai',
  models: ['*/*'],
  discover: true,
  speaks: {
    chat: ['chat-completions'],
    embed: ['embeddings'],
    'generate-image': ['images'],
    transcribe: ['audio'],
    speak: ['audio'],
  },
  // https://docs.deepinfra.com/batch/introduction
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.8,
  traits: {
    '*': { outputLimitField: 'max_tokens', efforts: ['none', 'low', 'medium', 'high'] },
  },
});
