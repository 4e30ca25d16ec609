import { z } from 'zod';
import { defineChannel } from 'sluice';
import { bearer, overHttp } from './_kit/http/http-channel.ts';
import { claudeTraits } from './anthropic.ts';

/**
 * Snowflake Cortex; the key is a programmatic access token. Claude models use the messages format.
 * https://docs.snowflake.com/user-guide/snowflake-cortex/cortex-rest-api
 */
export default defineChannel({
  name: 'snowflake',
  catalogue: ['snowflake'],
  models: ['claude-*', 'openai-*', 'llama*', 'mistral-*', 'deepseek-*', 'snowflake-*'],
  options: z.object({
    account: z
      .string()
      .regex(/^[a-z0-9_.-]+$/i, 'must be an account identifier, such as MYORG-MYACCOUNT')
      .optional()
      .describe('account identifier, if `baseUrl` is not set'),
  }),
  setup({ account, ...options }, tools) {
    if (account === undefined && options.baseUrl === undefined)
      throw new Error('account is missing. Give your account identifier, or baseUrl.');
    return overHttp(options, tools, {
      // Names with an underscore are no host names.
      baseUrl: `https://${(account ?? '').replaceAll('_', '-').toLowerCase()}.snowflakecomputing.com/api/v2/cortex/v1`,
      headers: bearer,
      speaks: { chat: ['chat-completions', 'messages'] },
      defaults: { 'anthropic-version': '2023-06-01' },
      traits: (model) =>
        model.startsWith('claude-')
          ? { ...claudeTraits(model), formats: ['messages'], jsonSchema: false, fetchesUrls: false }
          : {
              formats: ['chat-completions'],
              ...(/gpt-[5-9]/.test(model)
                ? { reasoning: 'effort', efforts: ['minimal', 'low', 'medium', 'high'] }
                : { reasoning: 'none' }),
              ...(/-r1/.test(model) ? { thinksByDefault: true, stopsThinking: false } : {}),
              // github:anomalyco/opencode#11455: `max_tokens` does not count.
              outputLimitField: 'max_completion_tokens',
              // https://pypi.org/project/pydantic-ai-slim/2.68.0, providers/snowflake.py: tools and forms of answers are for Claude and OpenAI's models.
              ...(model.startsWith('openai-') ? {} : { tools: false, jsonSchema: false, jsonObject: false }),
              refusedMembers: ['prompt_cache_key', 'top_k'],
              refuses: ['customTools', 'choices', 'logprobs', 'topLogprobs', 'seed', 'topK'],
            },
    });
  },
});
