import { z } from 'zod';
import { defineChannel, type ModelTraits, type ChannelParts, type ChannelTools } from 'sluice';
import { bearer, overHttp } from './_kit/http/http-channel.ts';
import { claudeTraits } from './anthropic.ts';

/**
 * Databricks model serving: `workspace` is its host; or `gateway`, that of its AI Gateway, whose endpoints are models of many makers under
 * names of their own. Claude is asked in the messages format, where its thinking keeps its proofs.
 * https://docs.databricks.com/aws/en/machine-learning/model-serving/query-chat-models
 * https://docs.databricks.com/gcp/en/machine-learning/model-serving/query-anthropic-messages
 * https://docs.databricks.com/aws/en/ai-gateway/query-endpoints-beta
 */
export default defineChannel({
  name: 'databricks',
  catalogue: ['databricks'],
  models: ['databricks-*'],
  options: z.object({
    workspace: z
      .string()
      .regex(/^[a-z0-9.-]+$/i, 'must be the host of a workspace, such as adb-1234.5.azuredatabricks.net')
      .optional()
      .describe('host of the workspace, if neither `gateway` nor `baseUrl` is set'),
    gateway: z
      .string()
      .regex(
        /^[a-z0-9.-]+$/i,
        'must be the host of an AI Gateway, such as 1234.ai-gateway.cloud.databricks.com',
      )
      .optional()
      .describe('host of an AI Gateway, in place of a workspace'),
  }),
  setup({ workspace, gateway, ...options }, tools: ChannelTools): ChannelParts {
    if (workspace === undefined && gateway === undefined && options.baseUrl === undefined)
      throw new Error(
        'workspace is missing. Give the host of your workspace or of its AI Gateway, or baseUrl.',
      );
    const unified = gateway === undefined ? '' : '/mlflow/v1';
    const parts = overHttp(options, tools, {
      baseUrl: gateway === undefined ? `https://${workspace ?? ''}/serving-endpoints` : `https://${gateway}`,
      headers: bearer,
      speaks: { chat: ['chat-completions', 'messages'], embed: ['embeddings'] },
      traits: traitsOf,
      thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
    });
    return {
      ...parts,
      open: (call, request) =>
        parts.open(
          call,
          request.path === '/messages'
            ? {
                ...request,
                path: '/anthropic/v1/messages',
                headers: { 'anthropic-version': '2023-06-01', ...request.headers },
              }
            : { ...request, path: unified + request.path },
        ),
    };
  },
});

/** https://docs.databricks.com/aws/en/machine-learning/model-serving/query-reason-models */
function traitsOf(model: string): ModelTraits {
  const [claude] = /claude-.+$/.exec(model) ?? [];
  if (claude !== undefined)
    return { ...claudeTraits(claude), formats: ['messages'], jsonSchema: false, fetchesUrls: false };
  return {
    formats: ['chat-completions'],
    ...(/gpt-oss|gemini-[3-9]/.test(model)
      ? { reasoning: 'effort', efforts: ['low', 'medium', 'high'] }
      : { reasoning: /gpt-[5-9]/.test(model) ? 'effort' : 'none' }),
    outputLimitField: 'max_tokens',
    systemRole: 'system',
    // github:BerriAI/litellm#31633: "Multiple tool calls are not supported."
    ...(/gpt-oss|llama/.test(model) ? { parallelHistory: false } : {}),
    // github:databricks/databricks-sdk-py#1263; LiteLLM 1.110.2, llms/databricks/chat/transformation.py, `get_supported_openai_params`
    refuses: ['customTools', 'topK', 'promptCacheKey', 'metadata', 'verbosity'],
    refusedMembers: ['prompt_cache_key', 'top_k', 'store', 'metadata', 'verbosity', 'safety_identifier'],
  };
}
