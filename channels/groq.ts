import { gptOss } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Members beyond the common ones that its API takes. https://console.groq.com/docs/api-reference#chat-create */
const groqMembers = [
  'citation_options',
  'compound_custom',
  'disable_tool_validation',
  'documents',
  'exclude_domains',
  'function_call',
  'functions',
  'include_domains',
  'include_reasoning',
  'logit_bias',
  'reasoning_format',
  'search_settings',
  'store',
  'stream_options.include_usage',
];

/** Models without structured output. https://console.groq.com/docs/structured-outputs#supported-models */
const noSchema = { jsonSchema: false } as const;

/** Groq. It answers 400 to log probabilities, to more than one choice, and to members that it does not know. */
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
  // groq-sdk 1.6.0, resources/chat/completions.d.ts, `ChatCompletionSystemMessageParam`
  developerRole: true,
  traits: {
    '*': {
      reasoning: 'none',
      reasoningField: 'reasoning',
      refuses: ['logprobs', 'topLogprobs', 'choices', 'topK', 'promptCacheKey', 'verbosity', 'modalities'],
      refusesUnknown: true,
      refusedMembers: [{ path: 'safety_identifier', as: 'user' }],
      members: groqMembers,
      // Unknown members are refused.
      cacheMark: 'none',
      // https://console.groq.com/docs/structured-outputs, strict mode.
      schemaSubset: { closesObjects: true, requiresAll: true },
    },
    '*whisper-*': { transcripts: ['json', 'text', 'verbose_json'] },
    'playai-tts*': { streamsSpeech: false },
    'canopylabs/*': { streamsSpeech: false },
    'openai/gpt-oss-*': gptOss,
    'llama-3*': noSchema,
    'qwen/qwen3-*': noSchema,
    // Its thinking stands before the answer unless a client asks otherwise: https://console.groq.com/docs/reasoning
    'qwen/qwen3*': { inlineThinking: true, reasoning: 'effort', efforts: ['none'], thinksByDefault: true },
  },
});
