import { z } from 'zod';
import { defineChannel } from 'sluice';
import type { ChannelTools } from 'sluice/internal';
import { bearer, overHttp } from './_http.ts';

/** Databricks model serving: `workspace` is its host. https://docs.databricks.com/aws/en/machine-learning/model-serving/query-chat-models */
export default defineChannel({
  name: 'databricks',
  catalogue: ['databricks'],
  models: ['databricks-*'],
  options: z.object({
    workspace: z
      .string()
      .regex(/^[a-z0-9.-]+$/i, 'must be the host of a workspace, such as adb-1234.5.azuredatabricks.net')
      .optional(),
  }),
  setup({ workspace, ...options }, tools: ChannelTools) {
    if (workspace === undefined && options.baseUrl === undefined)
      throw new Error('workspace is missing. Give the host of your workspace, or baseUrl.');
    return overHttp(options, tools, {
      baseUrl: `https://${workspace ?? ''}/serving-endpoints`,
      headers: bearer,
      speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
      traits: (model) => ({
        ...(model.includes('gpt-oss')
          ? { reasoning: 'effort', efforts: ['low', 'medium', 'high'] }
          : { reasoning: 'none' }),
        outputLimitField: 'max_tokens',
        refuses: ['customTools'],
      }),
    });
  },
});
