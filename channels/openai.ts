import { customTools, openaiTable, thinking } from './_kit/dialect/openai-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** OpenAI. Chat completions and responses for most models; `max_completion_tokens` carries the output limit in chat completions. */
export default openaiLike({
  name: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  catalogue: ['openai', 'text-completion-openai'],
  models: [
    'gpt-*',
    'chatgpt-*',
    'o1*',
    'o3*',
    'o4*',
    'codex-*',
    'computer-use-*',
    'text-embedding-*',
    'omni-moderation-*',
    'text-moderation-*',
    'whisper-*',
    'tts-*',
    'dall-e-*',
    // As patterns: a name without one would be all that model lists show of this channel.
    'davinci-*',
    'babbage-*',
  ],
  speaks: {
    chat: ['chat-completions', 'responses', 'text-completions'],
    compact: ['responses'],
    realtime: ['realtime'],
    embed: ['embeddings'],
    moderate: ['moderations'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
    speak: ['audio'],
    'generate-image': ['images'],
    'edit-image': ['images'],
    'vary-image': ['images'],
  },
  keeps: {
    'chat-completions': [
      'files',
      'uploads',
      'batches',
      'fine_tuning/jobs',
      'vector_stores',
      'containers',
      'evals',
    ],
  },
  // https://developers.openai.com/api/docs/guides/batch
  batchShare: 0.5,
  customTools,
  developerRole: true,
  thinking,
  // The limits are those of models that the catalogue does not know.
  traits: {
    ...openaiTable,
    '*': { ...openaiTable['*'], mcp: ['responses'], inputLimit: 128_000, outputLimit: 16_384 },
  },
});
