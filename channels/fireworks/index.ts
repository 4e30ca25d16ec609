import { z } from 'zod';
import { defineChannel, type ChannelParts, type ChannelTools } from 'sluice';
import { fireworksBatches } from './batches.ts';
import { inBoth, withMessages, type MessagesSide } from '../_kit/dialect/messages-side.ts';
import { bearer, overHttp, traitsByModel, type HttpProvider } from '../_kit/http/http-channel.ts';

/**
 * Members beyond the common ones. https://docs.fireworks.ai/api-reference/post-chatcompletions
 * LiteLLM 1.110.2, litellm/llms/fireworks_ai/chat/transformation.py
 */
const fireworksMembers = [
  'context_length_exceeded_behavior',
  'echo',
  'echo_last',
  'functions',
  'ignore_eos',
  'logit_bias',
  'min_p',
  'mirostat_lr',
  'mirostat_target',
  'perf_metrics_in_response',
  'prediction',
  'prompt_cache_isolation_key',
  'prompt_truncate_len',
  'raw_output',
  'reasoning_history',
  'repetition_penalty',
  'return_token_ids',
  'safe_tokenization',
  'sampling_mask',
  'speculation',
  'stream_options.include_usage',
  'thinking',
  'typical_p',
];

const provider: HttpProvider = {
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  headers: bearer,
  modelList: '/models',
  speaks: {
    chat: ['chat-completions', 'responses', 'text-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
  },
  traits: traitsByModel({
    '*': {
      formats: ['chat-completions'],
      outputLimitField: 'max_tokens',
      // https://docs.fireworks.ai/guides/reasoning
      reasoning: 'effort',
      efforts: ['none', 'low', 'medium', 'high'],
      systemRole: 'system',
      refuses: ['customTools', 'verbosity', 'modalities'],
      // github:anomalyco/opencode#4386: unknown members are refused.
      refusesUnknown: true,
      refusedMembers: [{ path: 'safety_identifier', as: 'user' }],
      members: fireworksMembers,
      cacheMark: 'none',
    },
    '*kimi-k3*': { efforts: ['low', 'high', 'max'] },
  }),
};

/** https://docs.fireworks.ai/tools-sdks/anthropic-compatibility: efforts beside `enabled`, no `adaptive`, and no marks on tools. */
const side: MessagesSide = {
  instead: ['/v1', '/v1'],
  headers: bearer,
  models: ['accounts/*'],
  traits: (chat) => ({
    ...inBoth(chat),
    reasoning: 'thinking',
    ...(chat.efforts === undefined ? {} : { efforts: chat.efforts }),
    marksTools: false,
    refusedMembers: ['service_tier', 'inference_geo', 'container'],
  }),
};

/**
 * Fireworks AI: models are paths, `accounts/fireworks/models/NAME`. `account` is the name of the account, to which files and batches belong.
 * https://docs.fireworks.ai/tools-sdks/openai-compatibility
 */
export default defineChannel({
  name: 'fireworks',
  catalogue: ['fireworks_ai', 'fireworks_ai-embedding-models'],
  models: ['accounts/*', 'nomic-ai/*'],
  discover: true,
  options: z.object({
    account: z
      .string()
      .regex(/^[\w-]+$/)
      .optional()
      .describe('id of the account, for files, batches and fine-tuning'),
  }),
  setup({ account, ...options }, tools: ChannelTools): ChannelParts {
    const plain = overHttp(options, tools, provider);
    const parts = withMessages(plain, options, tools, { baseUrl: provider.baseUrl, side });
    if (account === undefined) return parts;
    const root = (options.baseUrl ?? provider.baseUrl).replace(/(?:\/inference)?\/v1\/*$/, '');
    const baseUrl = `${root}/v1/accounts/${account}`;
    const own = overHttp({ ...options, baseUrl }, tools, provider);
    return {
      ...parts,
      keeps: { 'chat-completions': ['files', 'batches'] },
      batchShare: 0.5,
      batchModel: 'model',
      open: fireworksBatches({ account, open: parts.open, own: own.open, download: tools.download }),
    };
  },
});
