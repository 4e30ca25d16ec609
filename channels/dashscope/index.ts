/** Alibaba Cloud Model Studio (DashScope): chat in two formats, and what only its own API has. */
import { z } from 'zod';
import { defineChannel, type ModelTraits } from 'sluice';
import { withNative } from './native.ts';
import { apiKey, bearer, overHttp, traitsByModel } from '../_kit/http/http-channel.ts';
import { inBoth, withMessages, type MessagesSide } from '../_kit/dialect/messages-side.ts';
import { thinksAlike } from '../_kit/dialect/open-models.ts';

const hosts = {
  china: 'dashscope.aliyuncs.com',
  singapore: 'dashscope-intl.aliyuncs.com',
  virginia: 'dashscope-us.aliyuncs.com',
} as const;

/**
 * Models that are switched to think. `tool_choice` may not force a tool meanwhile.
 * https://www.alibabacloud.com/help/en/model-studio/deep-thinking
 * https://www.alibabacloud.com/help/en/model-studio/qwen-function-calling
 */
const switched = {
  reasoning: 'enable-thinking',
  thinkingBudget: { min: 1 },
  forcedTools: 'without-thinking',
  // "Json mode response is not supported when enable_thinking is true": https://www.alibabacloud.com/help/en/model-studio/error-code
  jsonThinking: false,
} as const;
const thinking = { ...thinksAlike, forcedTools: 'without-thinking' } as const;
const on = { ...switched, thinksByDefault: true } as const;
/** Open Qwen3 models reason by default, and return 400 to a request that is not streamed and does not disable it: `parameter.enable_thinking must be set to false for non-streaming calls`. */
const open = { ...on, thinksInStreamsOnly: true } as const;
/** From Qwen3.5 on the models reason by default, Qwen3 does not. https://docs.qwencloud.com/developer-guides/text-generation/thinking */
const hybrids: Readonly<Record<string, ModelTraits>> = {
  ...Object.fromEntries(
    [
      'qwen-plus*',
      'qwen-turbo*',
      'qwen-flash*',
      'qwen3-max*',
      'qwen3-vl-*',
      'qwen3-omni*',
      'deepseek-v3.*',
    ].map((model) => [model, switched]),
  ),
  ...Object.fromEntries(
    ['0.6b', '1.7b', '4b', '8b', '14b', '32b', '30b-a3b', '235b-a22b'].map((size) => [`qwen3-${size}`, open]),
  ),
  ...Object.fromEntries(
    [
      'qwen3.5*',
      'qwen3.6*',
      'qwen3.7*',
      'qwen3.8*',
      'qwen4*',
      'deepseek-v4*',
      '*glm-4.5*',
      '*glm-4.6*',
      '*glm-4.7*',
      '*glm-5*',
      '*kimi-k2.5*',
      '*kimi-k2.6*',
    ].map((model) => [model, on]),
  ),
};

/** https://www.alibabacloud.com/help/en/model-studio/anthropic-api-messages: Qwen alone. */
const messages: MessagesSide = {
  instead: ['/compatible-mode/v1', '/apps/anthropic/v1'],
  headers: apiKey,
  // github:anthropics/claude-code#29531: thinking is `enabled` or `disabled`.
  traits: (chat) => ({ ...inBoth(chat), reasoning: 'budget' }),
  models: ['qwen-max*', 'qwen-plus*', 'qwen-flash*', 'qwen-turbo*', 'qwen3-max*', 'qwen3-coder-*', 'qwen3.*'],
};

/** Alibaba Cloud Model Studio: Qwen. Keys belong to one region. https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope */
export default defineChannel({
  name: 'dashscope',
  catalogue: ['dashscope'],
  models: [
    'qwen*',
    'qwq-*',
    'qvq-*',
    'text-embedding-v*',
    'gte-rerank*',
    'wan2.7*',
    'wan3*',
    'wan*-t2i*',
    'happyhorse-*',
  ],
  // The dearer of two regions
  prices: {
    // https://www.alibabacloud.com/help/en/model-studio/text-rerank-api (2026-03-15)
    'qwen3-rerank': { input: 0.1, output: 0 },
    'gte-rerank-v2': { input: 0.115, output: 0 },
    // https://www.alibabacloud.com/help/en/model-studio/qwen-tts (2026-01-06): $0.114682 for 10,000 characters
    'qwen3-tts-flash-2025-09-18': { perCharacter: 0.000_011_468_2 },
    'qwen3-tts-flash-2025-11-27': { perCharacter: 0.000_011_468_2 },
  },
  options: z.object({
    region: z.enum(['china', 'singapore', 'virginia']).default('singapore').describe('region of the account'),
  }),
  setup({ region, ...options }, tools) {
    const baseUrl = `https://${hosts[region]}/compatible-mode/v1`;
    const parts = overHttp(options, tools, {
      baseUrl,
      headers: bearer,
      speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
      // https://www.alibabacloud.com/help/en/model-studio/batch-interfaces-compatible-with-openai
      keeps: { 'chat-completions': ['files', 'batches'] },
      batchShare: 0.5,
      modelList: '/models',
      traits: traitsByModel({
        '*': {
          reasoning: 'none',
          outputLimitField: 'max_tokens',
          // https://www.alibabacloud.com/help/en/model-studio/error-code
          systemRole: 'system',
          // https://www.alibabacloud.com/help/en/model-studio/context-cache
          cacheMark: 'cache_control',
          refuses: ['customTools', 'frequencyPenalty'],
        },
        ...hybrids,
        '*thinking*': { ...thinking, jsonSchema: false },
        'qwq-*': { ...thinking, jsonSchema: false },
        'qvq-*': { ...thinking, jsonSchema: false },
        '*kimi-k2.7*': thinking,
        '*deepseek-r1*': thinking,
        'qwen*instruct*': { reasoning: 'none' },
        '*-coder*': { reasoning: 'none' },
      }),
      thinking: switched,
    });
    return withNative(
      withMessages(parts, options, tools, { baseUrl, side: messages }),
      options,
      tools,
      baseUrl,
    );
  },
});
