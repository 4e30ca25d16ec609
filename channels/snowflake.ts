import { z } from 'zod';
import { defineChannel } from 'sluice';
import type { ChannelTools } from 'sluice/internal';
import { bearer, overHttp } from './_http.ts';

/** Snowflake Cortex; the key is a programmatic access token. https://docs.snowflake.com/en/user-guide/snowflake-cortex/open_ai_sdk */
export default defineChannel({
  name: 'snowflake',
  catalogue: ['snowflake'],
  models: ['claude-*', 'openai-*', 'llama*', 'mistral-*', 'deepseek-*', 'snowflake-*'],
  options: z.object({
    account: z
      .string()
      .regex(/^[a-z0-9_.-]+$/i, 'must be an account identifier, such as MYORG-MYACCOUNT')
      .optional(),
  }),
  setup({ account, ...options }, tools: ChannelTools) {
    if (account === undefined && options.baseUrl === undefined)
      throw new Error('account is missing. Give your account identifier, or baseUrl.');
    return overHttp(options, tools, {
      // Names with an underscore are no host names.
      baseUrl: `https://${(account ?? '').replaceAll('_', '-').toLowerCase()}.snowflakecomputing.com/api/v2/cortex/v1`,
      headers: bearer,
      speaks: { chat: ['chat-completions'] },
      traits: () => ({
        reasoning: 'none',
        refuses: ['customTools', 'choices', 'logprobs', 'topLogprobs', 'seed'],
      }),
    });
  },
});
