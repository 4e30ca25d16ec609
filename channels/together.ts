import { openaiLike } from './_openai-like.ts';
import { togetherBatches } from './_together-batches.ts';

/** Together AI. `max_tokens` carries the output limit. https://docs.together.ai/docs/openai-api-compatibility */
export default openaiLike({
  name: 'together',
  catalogue: ['together_ai'],
  baseUrl: 'https://api.together.xyz/v1',
  models: ['*/*'],
  discover: true,
  speaks: {
    chat: ['chat-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    'generate-image': ['images'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
    speak: ['audio'],
  },
  // https://docs.together.ai/docs/batch-inference
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  batches: togetherBatches,
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    'openai/gpt-oss-*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
    'deepseek-ai/DeepSeek-R1*': { inlineThinking: true },
  },
});
