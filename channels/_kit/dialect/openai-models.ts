/** Traits of OpenAI's models by name, wherever they are served. */
import type { ModelTraits } from 'sluice';
import { traitsByModel } from '../http/http-channel.ts';

/** The API returns 400 for `top_k`, which is an extension of other providers. Reasoning models also reject the others, unless reasoning is off. */
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

/** Traits of models that think. */
export const thinking: ModelTraits = {
  reasoning: 'effort',
  systemRole: 'developer',
  // @ai-sdk/openai 3.0.141, src/chat/openai-chat-language-model.ts: `max_tokens` is answered 400.
  outputLimitField: 'max_completion_tokens',
  refuses,
};

/** Efforts of the first GPT-5 models, which have no `none`. https://developers.openai.com/api/docs/guides/reasoning */
const firstGpt5 = { efforts: ['minimal', 'low', 'medium', 'high'] } as const;

/**
 * openai 6, `ChatCompletionCreateParams.stop`: not supported with o3 and o4-mini. github:huggingface/smolagents#1671 (GPT-5 mini), github:huggingface/smolagents#1868 (5.1), github:huggingface/smolagents#1893 (5.2,
 * Azure), github:CherryHQ/cherry-studio#17680 (5.6), github:bolna-ai/bolna#1019 (6).
 */
const noStop = { refuses: [...refuses, 'stop'] } as const;
const gpt: ModelTraits = { ...thinking, ...noStop };

/**
 * Chat completions refuse function tools where these models think: from GPT-5.6 on also without an effort, earlier ones where one is given.
 * github:openai/openai-openapi#541 (5.4), github:charmbracelet/crush#2913 (5.5), github:livekit/agents#7169 (5.2, 5.6), github:BerriAI/litellm#34569
 * (5.6), github:onyx-dot-app/onyx#15008 (6), github:can1357/oh-my-pi#11052 and github:veryfront/veryfront-code#3837 (Azure).
 */
const thinksWithTools = { ...gpt, functionTools: 'responses' } as const;
const alwaysWithTools = { ...thinksWithTools, thinksByDefault: true } as const;

/** https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, of strict schemas and tools. */
const schemaSubset: NonNullable<ModelTraits['schemaSubset']> = {
  closesObjects: true,
  requiresAll: true,
  refuses: [
    'allOf',
    'oneOf',
    'not',
    'if',
    'then',
    'else',
    'dependentRequired',
    'dependentSchemas',
    'patternProperties',
  ],
  formats: ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
};

const breakpoints = { cacheMark: 'prompt_cache_breakpoint' } as const;

/** APIs of the models: the oldest have only text completions, and the newest only Responses. */
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

/** Patterns of the models that take free-text tools. */
export const customTools: readonly string[] = ['gpt-5*', 'gpt-6*', '*codex*'];

/** Traits by name pattern; later patterns override earlier ones. */
export const openaiTable: Readonly<Record<string, ModelTraits>> = {
  '*': {
    formats: ['chat-completions', 'responses'],
    serverTools: 'responses',
    reasoning: 'none',
    refuses: unknown,
    cacheMark: 'none',
    schemaSubset,
  },
  'gpt-*realtime*': { inputLimit: 32_000, outputLimit: 4096 },
  // At most eight tiles and the whole image, each with about thirty times the tokens of other models.
  'gpt-4o-mini*': { imageTokens: 48_169 },
  'gpt-4o*-realtime*': { inputLimit: 128_000, outputLimit: 4096 },
  // Efforts and limits of exactly one model stand in the catalogue; these are for those that it does not know.
  'o*': { ...thinking, efforts: ['low', 'medium', 'high'] },
  'ft:o*': { ...thinking, efforts: ['low', 'medium', 'high'] },
  ...Object.fromEntries(['5', '6', '7', '8', '9'].map((one) => [`gpt-${one}*`, gpt])),
  ...Object.fromEntries(['5.2', '5.4', '5.5'].map((one) => [`gpt-${one}*`, thinksWithTools])),
  // https://developers.openai.com/api/docs/guides/prompt-caching: breakpoints from GPT-5.6 on.
  ...Object.fromEntries(
    ['5.6', '7', '8', '9'].map((one) => [`gpt-${one}*`, { ...alwaysWithTools, ...breakpoints }]),
  ),
  'o3*': noStop,
  'o4-mini*': noStop,
  'gpt-5': firstGpt5,
  'gpt-5-20*': firstGpt5,
  'gpt-5-mini*': firstGpt5,
  'gpt-5-nano*': firstGpt5,
  'codex-*': { ...thinking, efforts: ['low', 'medium', 'high'] },
  'gpt-5*-codex*': { efforts: ['low', 'medium', 'high'] },
  'gpt-5.1-codex-max*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  'gpt-5.2-codex*': { efforts: ['low', 'medium', 'high', 'xhigh'] },
  'gpt-5-chat*': { reasoning: 'none', systemRole: 'system', refuses: unknown },
  // @ai-sdk/openai@3.0.141, getOpenAILanguageModelCapabilities: without an effort of `none` that would bring them back, as GPT-5.1 to 5.6 have.
  'gpt-6*': { ...alwaysWithTools, ...breakpoints, refusedMembers: samplingMembers },
  'gpt-daybreak*': responds,
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
};

const ofTable = traitsByModel(openaiTable);

function takesCustomTools(model: string): boolean {
  return /^gpt-[56]|codex/.test(model);
}

/** Returns true for names of models of OpenAI, as against names that operators give. */
export function isOpenai(model: string): boolean {
  return /^(?:ft:)?(?:gpt-\d|gpt-audio|gpt-realtime|chatgpt-|o\d|codex-|computer-use)/.test(model);
}

/** Traits of a model of OpenAI behind an API that has chat completions and Responses, and no others. */
export function onV1(traits: ModelTraits): ModelTraits {
  const respondsOnly = traits.formats?.length === 1 && traits.formats[0] === 'responses';
  return { ...traits, formats: respondsOnly ? ['responses'] : ['chat-completions', 'responses'] };
}

/** Returns what a model of OpenAI takes, wherever it is served. */
export function openaiTraits(model: string): ModelTraits {
  const known = ofTable(model);
  if (takesCustomTools(model)) return known;
  return { ...known, refuses: [...(known.refuses ?? []), 'customTools'] };
}
