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
const thinking = { reasoning: 'effort', systemRole: 'developer', refuses } as const;

/** OpenAI. Chat completions; `max_completion_tokens` carries the output limit for every model. */
export default openaiLike({
  name: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  models: ['gpt-*', 'chatgpt-*', 'o1*', 'o3*', 'o4*'],
  traits: {
    '*': { reasoning: 'none', refuses: unknown, inputLimit: 128_000, outputLimit: 16_384 },
    'gpt-4.1*': { inputLimit: 1_047_576, outputLimit: 32_768 },
    'o*': { ...thinking, efforts: ['low', 'medium', 'high'], inputLimit: 200_000, outputLimit: 100_000 },
    'gpt-5*': {
      ...thinking,
      efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
      inputLimit: 272_000,
      outputLimit: 128_000,
    },
    'gpt-5': { efforts: ['minimal', 'low', 'medium', 'high'] },
    'gpt-5-*': { efforts: ['minimal', 'low', 'medium', 'high'] },
    'gpt-5.1*': { efforts: ['none', 'low', 'medium', 'high'] },
    'gpt-5-pro*': { efforts: ['high'] },
    'gpt-5*-chat*': {
      reasoning: 'none',
      systemRole: 'system',
      refuses: unknown,
      inputLimit: 128_000,
      outputLimit: 16_384,
    },
  },
});
