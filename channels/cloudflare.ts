import { z } from 'zod';
import { defineChannel } from 'sluice';
import { bearer, overHttp } from './_kit/http/http-channel.ts';
import { gptOss } from './_kit/dialect/open-models.ts';

/** Cloudflare Workers AI: the account stands in the address. https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/ */
export default defineChannel({
  name: 'cloudflare',
  catalogue: ['cloudflare'],
  models: ['@cf/*', '@hf/*'],
  options: z.object({
    account: z
      .string()
      .regex(/^[0-9a-f]{32}$/i, 'must be the 32 hexadecimal digits of an account')
      .optional()
      .describe('id of the account, if `baseUrl` is not set'),
  }),
  setup({ account, ...options }, tools) {
    if (account === undefined && options.baseUrl === undefined)
      throw new Error('account is missing. Give the id of your Cloudflare account, or baseUrl.');
    return overHttp(options, tools, {
      baseUrl: `https://api.cloudflare.com/client/v4/accounts/${account ?? ''}/ai/v1`,
      headers: bearer,
      speaks: { chat: ['chat-completions', 'responses'], embed: ['embeddings'] },
      thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
      traits: (model) => ({
        // Only these are offered in responses.
        ...(model.includes('gpt-oss') ? gptOss : { formats: ['chat-completions'], reasoning: 'none' }),
        ...(/qwq|deepseek-r1/.test(model) ? { thinksByDefault: true, stopsThinking: false } : {}),
        outputLimitField: 'max_tokens',
        refuses: ['customTools', 'choices'],
      }),
    });
  },
});
