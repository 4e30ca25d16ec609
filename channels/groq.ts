import { openaiLike } from './_openai-like.ts';

/** Groq. It answers 400 to log probabilities and to more than one choice. */
export default openaiLike({
  name: 'groq',
  catalogue: ['groq'],
  baseUrl: 'https://api.groq.com/openai/v1',
  models: [
    'openai/gpt-oss-*',
    'llama-*',
    'meta-llama/*',
    'qwen/*',
    'moonshotai/*',
    'groq/*',
    'whisper-*',
    'distil-whisper-*',
    'playai-tts*',
    'canopylabs/*',
  ],
  speaks: {
    chat: ['chat-completions'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
    speak: ['audio'],
  },
  // https://console.groq.com/docs/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  traits: {
    '*': {
      reasoning: 'none',
      refuses: ['logprobs', 'topLogprobs', 'choices'],
      inputLimit: 131_072,
      // Unknown members are refused.
      cacheMark: 'none',
    },
    '*whisper-*': { transcripts: ['json', 'text', 'verbose_json'] },
    'playai-tts*': { streamsSpeech: false },
    'canopylabs/*': { streamsSpeech: false },
    'openai/gpt-oss-*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'], outputLimit: 65_536 },
    // Its thinking stands before the answer unless a client asks otherwise: https://console.groq.com/docs/reasoning
    'qwen/qwen3*': { inlineThinking: true, reasoning: 'effort', efforts: ['none'], thinksByDefault: true },
  },
});
