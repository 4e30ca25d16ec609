import { z } from 'zod';
import { defineChannel } from 'sluice';
import { bearer, overHttp, traitsByModel } from './_http.ts';

const hosts = {
  china: 'dashscope.aliyuncs.com',
  singapore: 'dashscope-intl.aliyuncs.com',
  virginia: 'dashscope-us.aliyuncs.com',
} as const;

/** Alibaba Cloud Model Studio: Qwen. Keys belong to one region. https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope */
export default defineChannel({
  name: 'dashscope',
  catalogue: ['dashscope'],
  models: ['qwen*', 'qwq-*', 'qvq-*', 'text-embedding-v*'],
  options: z.object({ region: z.enum(['china', 'singapore', 'virginia']).default('singapore') }),
  setup: ({ region, ...options }, tools) =>
    overHttp(options, tools, {
      baseUrl: `https://${hosts[region]}/compatible-mode/v1`,
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
          // https://www.alibabacloud.com/help/en/model-studio/context-cache
          cacheMark: 'cache_control',
          refuses: ['customTools', 'frequencyPenalty'],
        },
        '*thinking*': { jsonSchema: false },
      }),
    }),
});
