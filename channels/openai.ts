import { openaiLike } from './_openai-like.ts';

/** `top_k` is an extension of others' that this API answers with 400. Models that think refuse the rest too, unless told not to think. */
const unknown = ['topK'];
const refuses = [
  ...unknown,
  'temperature',
  'topP',
  'logprobs',
  'topLogprobs',
  'frequencyPenalty',
  'presencePenalty',
];
/** The members of the same settings, for models that refuse them also when they do not think. */
const samplingMembers = [
  'temperature',
  'top_p',
  'logprobs',
  'top_logprobs',
  'frequency_penalty',
  'presence_penalty',
];
const thinking = { reasoning: 'effort', systemRole: 'developer', refuses } as const;

const breakpoints = { cacheMark: 'prompt_cache_breakpoint' } as const;

/** The oldest models only complete text, and the newest only answer in responses. */
const completes = { formats: ['text-completions'], reasoning: 'none' } as const;
const responds = { formats: ['responses'] } as const;

/** What the two older image models take. The newer one makes images and edits none: its API says so itself. */
const smallImages = {
  streams: false,
  promptLength: 1000,
  most: 10,
  sizes: ['256x256', '512x512', '1024x1024'],
  qualities: ['standard', 'auto'],
  styles: [],
  source: { mimeType: 'image/png', below: 4 * 1024 * 1024 },
} as const;
const largeImages = {
  streams: false,
  promptLength: 4000,
  most: 1,
  sizes: ['1024x1024', '1024x1792', '1792x1024'],
  qualities: ['standard', 'hd', 'auto'],
  styles: ['vivid', 'natural'],
} as const;

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
  customTools: ['gpt-5*', 'gpt-6*', '*codex*'],
  thinking,
  traits: {
    '*': {
      formats: ['chat-completions', 'responses'],
      serverTools: 'responses',
      reasoning: 'none',
      refuses: unknown,
      cacheMark: 'none',
    },
    'gpt-*realtime*': { inputLimit: 32_000, outputLimit: 4096 },
    // Eight tiles and the whole at the most, each counted as some thirty times the tokens of other models.
    'gpt-4o-mini*': { imageTokens: 48_169 },
    'gpt-4o*-realtime*': { inputLimit: 128_000, outputLimit: 4096 },
    // Efforts and limits of exactly one model stand in the catalogue; these are for those that it does not know.
    'o*': { ...thinking, efforts: ['low', 'medium', 'high'] },
    'ft:o*': { ...thinking, efforts: ['low', 'medium', 'high'] },
    ...Object.fromEntries(['5', '6', '7', '8', '9'].map((one) => [`gpt-${one}*`, thinking])),
    // https://developers.openai.com/api/docs/guides/prompt-caching: breakpoints from GPT-5.6 on.
    ...Object.fromEntries(['5.6', '6', '7', '8', '9'].map((one) => [`gpt-${one}*`, breakpoints])),
    'codex-*': { ...thinking, efforts: ['low', 'medium', 'high'] },
    'gpt-5*-codex*': { efforts: ['low', 'medium', 'high'] },
    'gpt-5.1-codex-max*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
    'gpt-5.2-codex*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
    'gpt-5-chat*': { reasoning: 'none', systemRole: 'system', refuses: unknown },
    // @ai-sdk/openai@3.0.141, getOpenAILanguageModelCapabilities: without an effort of `none` that would bring them back, as GPT-5.1 to 5.6 have.
    'gpt-6*': { ...thinking, refusedMembers: samplingMembers },
    'o1-pro*': responds,
    'o3-pro*': responds,
    'gpt-5*-pro*': responds,
    '*codex*': responds,
    // https://developers.openai.com/api/docs/models: these search in chat completions, and are in no other API.
    '*-search-preview*': { formats: ['chat-completions'] },
    '*-search-api*': { formats: ['chat-completions'] },
    '*deep-research*': responds,
    'computer-use*': responds,
    'gpt-*-transcribe*': { transcripts: ['json', 'text'] },
    'gpt-*-transcribe-diarize*': { transcripts: ['json', 'text', 'diarized_json'] },
    'tts-1*': { streamsSpeech: false },
    '*gpt-image*': { images: { delivers: 'base64' } },
    'dall-e-2*': { images: smallImages },
    'dall-e-3*': { images: largeImages },
    'gpt-3.5-turbo-instruct*': completes,
    'davinci-002': completes,
    'babbage-002': completes,
  },
});
