import type { ModelTraits } from 'sluice';
import { bearer, httpChannel, traitsByModel } from './_kit/http/http-channel.ts';
import { openaiTraits } from './_kit/dialect/openai-models.ts';
import { thinksAlike } from './_kit/dialect/open-models.ts';

/** Traits of all models. The Azure service behind it returns 400 for unknown members: github:zed-industries/zed#52000. */
const common = {
  reasoning: 'none',
  outputLimitField: 'max_tokens',
  systemRole: 'system',
  refusedMembers: ['prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'verbosity', 'top_k'],
  refuses: ['topK', 'promptCacheKey', 'verbosity', 'customTools'],
  cacheMark: 'none',
} as const satisfies ModelTraits;

const others = traitsByModel({
  'deepseek/deepseek-r1*': { ...thinksAlike, inlineThinking: true },
  'microsoft/*reasoning*': { ...thinksAlike, inlineThinking: true },
});

/**
 * Dollars for a million tokens, where the use of an account is paid: github:github/docs, content/billing/reference/costs-for-github-models.md. No list
 * of another provider has them.
 */
const prices = {
  'openai/gpt-4o': { input: 2.5, cacheRead: 1.25, output: 10 },
  'openai/gpt-4o-mini': { input: 0.15, cacheRead: 0.08, output: 0.6 },
  'openai/gpt-4.1': { input: 2, cacheRead: 0.5, output: 8 },
  'openai/gpt-4.1-mini': { input: 0.4, cacheRead: 0.1, output: 1.6 },
  'microsoft/phi-4': { input: 0.13, output: 0.5 },
  'microsoft/phi-4-mini-instruct': { input: 0.08, output: 0.3 },
  'microsoft/phi-4-multimodal-instruct': { input: 0.08, output: 0.32 },
  'microsoft/mai-ds-r1': { input: 1.35, output: 5.4 },
  'deepseek/deepseek-r1': { input: 1.35, output: 5.4 },
  'deepseek/deepseek-r1-0528': { input: 1.35, output: 5.4 },
  'deepseek/deepseek-v3-0324': { input: 1.14, output: 4.56 },
  'xai/grok-3': { input: 3, output: 15 },
  'xai/grok-3-mini': { input: 0.25, output: 1.27 },
  'meta/llama-4-maverick-17b-128e-instruct-fp8': { input: 0.25, output: 1 },
  'meta/llama-3.3-70b-instruct': { input: 0.71, output: 0.71 },
} as const;

/** GitHub Models: `vendor/model`, with a token that has `models: read`. https://docs.github.com/en/rest/models/inference */
export default httpChannel({
  name: 'github-models',
  catalogue: ['github'],
  baseUrl: 'https://models.github.ai/inference',
  models: ['*/*'],
  headers: bearer,
  modelList: '/models',
  prices,
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits(model) {
    const [, name] = /^openai\/(.+)$/.exec(model) ?? [];
    return name === undefined ? { ...common, ...others(model) } : ofOpenai(name);
  },
});

/** Returns the traits of a model of OpenAI: the same as at OpenAI for chat completions. */
function ofOpenai(name: string): ModelTraits {
  const { reasoning, systemRole, efforts, refuses = [], refusedMembers = [] } = openaiTraits(name);
  const thinks = reasoning !== undefined && reasoning !== 'none';
  return {
    ...common,
    ...(thinks ? { reasoning, outputLimitField: 'max_completion_tokens' } : {}),
    ...(systemRole === undefined ? {} : { systemRole }),
    ...(efforts === undefined ? {} : { efforts }),
    refuses: [...new Set([...common.refuses, ...refuses])],
    refusedMembers: [...common.refusedMembers, ...refusedMembers],
  };
}
