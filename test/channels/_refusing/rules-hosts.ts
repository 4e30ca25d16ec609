import {
  cacheMarkOtherThan,
  has,
  idOtherThan,
  isOneOf,
  messageHas,
  objects,
  otherThan,
  outside,
  roleOtherThan,
  unknownIn,
  words,
  type Check,
} from './checks.ts';
import { strictSchema } from './schemas.ts';
import type { Rule } from './table.ts';

/** Members of Groq's chat: groq-sdk 1.6.0, resources/chat/completions.d.ts, `ChatCompletionCreateParamsBase`. */
const groqMembers = words(`
    messages model citation_options compound_custom disable_tool_validation documents exclude_domains frequency_penalty
    function_call functions include_domains include_reasoning logit_bias logprobs max_completion_tokens max_tokens metadata
    n parallel_tool_calls presence_penalty reasoning_effort reasoning_format response_format search_settings seed
    service_tier stop store stream temperature tool_choice tools top_logprobs top_p user stream_options
  `);
/** Members of Mistral's chat: @mistralai/mistralai 2.7.0, esm/models/components/chatcompletionrequest.d.ts, `ChatCompletionRequest$Outbound`. */
const mistralMembers = words(`
    model temperature top_p max_tokens stream stop random_seed metadata messages response_format tools tool_choice
    presence_penalty frequency_penalty n prediction parallel_tool_calls reasoning_effort prompt_mode guardrails
    prompt_cache_key service_tier safe_prompt
  `);
/** @cerebras/cerebras_cloud_sdk 1.91.0, resources/chat/completions.d.ts, `ChatCompletionCreateParamsBase`. */
const cerebrasMembers = words(`
    messages model clear_thinking disable_reasoning frequency_penalty logit_bias logprobs max_completion_tokens max_tokens
    min_completion_tokens min_tokens model_parameters n parallel_tool_calls prediction presence_penalty prompt_cache_key
    reasoning_effort reasoning_format response_format seed service_tier stop stream stream_options temperature tool_choice
    tools top_logprobs top_p user
  `);
/** https://docs.fireworks.ai/api-reference/post-chatcompletions; LiteLLM 1.110.2, litellm/llms/fireworks_ai/chat/transformation.py */
const fireworksMembers = words(`
    model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens prompt_truncate_len temperature
    top_p top_k min_p typical_p frequency_penalty presence_penalty repetition_penalty mirostat_target mirostat_lr n
    ignore_eos stop response_format stream stream_options context_length_exceeded_behavior user logprobs top_logprobs echo
    echo_last logit_bias seed reasoning_effort reasoning_history thinking metadata prompt_cache_key
    prompt_cache_isolation_key prediction raw_output service_tier perf_metrics_in_response functions speculation
    return_token_ids safe_tokenization sampling_mask
  `);

const mistral = { kinds: ['mistral'], status: 422 } as const;
const forbidden = '{"type":"extra_forbidden","loc":["body","$"],"msg":"Extra inputs are not permitted"}';

/** An assistant's words at the end of a history that are not said to go on. */
const endsWithAssistant: Check = ({ body }) => {
  const last = objects(body['messages']).at(-1);
  return last?.['role'] === 'assistant' && last['prefix'] !== true ? 'messages' : undefined;
};

const moreThanOne: Check = ({ body: { n } }) => (typeof n === 'number' && n > 1 ? 'n' : undefined);

const hasJsonSchema = isOneOf('response_format.type', ['json_schema']);

/** Providers that refuse members which they do not know. */
export const hostRules: readonly Rule[] = [
  {
    kinds: ['groq'],
    refuses: unknownIn(groqMembers),
    says: "property '$' is unsupported",
    source: 'github:eigent-ai/eigent#1827; github:fanenr/chatbot#21',
  },
  {
    kinds: ['groq'],
    refuses: messageHas('assistant', 'reasoning_content', 'reasoning_details'),
    says: "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property '$' is unsupported)]",
    source: 'github:NousResearch/hermes-agent#11089',
  },
  {
    kinds: ['groq'],
    refuses: cacheMarkOtherThan(),
    says: "property '$' is unsupported",
    source: 'github:sipeed/picoclaw#1196: unknown members are refused',
  },
  {
    kinds: ['groq'],
    refuses: has('logprobs', 'top_logprobs', 'logit_bias'),
    says: "property '$' is unsupported",
    source: 'https://console.groq.com/docs/openai: currently unsupported features',
  },
  {
    kinds: ['groq'],
    refuses: moreThanOne,
    says: "'$' : number must be at most 1",
    source: 'https://console.groq.com/docs/openai: currently unsupported features',
  },
  {
    kinds: ['groq'],
    models: ['llama-3*', 'qwen/qwen3-*', 'gemma*'],
    refuses: hasJsonSchema,
    says: 'This model does not support response format `json_schema`.',
    source: 'https://console.groq.com/docs/structured-outputs#supported-models',
  },
  {
    kinds: ['groq'],
    models: ['qwen/qwen3*'],
    refuses: otherThan('reasoning_effort', ['none', 'default']),
    says: '`$` must be one of `none` or `default`',
    source: 'https://console.groq.com/docs/reasoning#reasoning-effort',
  },
  {
    kinds: ['groq'],
    models: ['openai/gpt-oss*'],
    refuses: otherThan('reasoning_effort', ['low', 'medium', 'high']),
    says: '`$` must be one of `low`, `medium`, or `high`',
    source: 'https://console.groq.com/docs/reasoning#reasoning-effort',
  },
  {
    kinds: ['groq'],
    models: ['llama*', 'meta-llama/*', 'moonshotai/*'],
    refuses: has('reasoning_effort'),
    says: '`$` is not supported with this model',
    source: 'https://console.groq.com/docs/reasoning#supported-models',
  },
  {
    ...mistral,
    refuses: unknownIn(mistralMembers),
    says: forbidden,
    source: 'github:editor-code-assistant/eca#231; github:Gitlawb/openclaude#739',
  },
  {
    ...mistral,
    refuses: messageHas('assistant', 'reasoning_content', 'reasoning'),
    says: forbidden,
    source: 'github:charmbracelet/crush#1590',
  },
  {
    ...mistral,
    refuses: messageHas('user', 'name'),
    says: forbidden,
    source: 'github:Gage-Technologies/mistral-go#2',
  },
  {
    ...mistral,
    refuses: cacheMarkOtherThan(),
    says: forbidden,
    source: 'github:mistralai/platform-docs-public#7: extra parameters are refused',
  },
  {
    ...mistral,
    refuses: roleOtherThan('system', 'user', 'assistant', 'tool'),
    says: "Input tag found using 'role' does not match any of the expected tags ($)",
    source: '@mistralai/mistralai 2.7.0, `ChatCompletionRequestMessage`',
  },
  {
    kinds: ['mistral'],
    refuses: strictSchema({ closed: true }),
    says: 'Missing `additionalProperties: False` in object schema ($)',
    source: 'github:mistralai/client-ts#107',
  },
  {
    kinds: ['mistral'],
    refuses: idOtherThan(/^[a-zA-Z0-9]{9}$/),
    says: 'Tool call id was $ but must be a-z, A-Z, 0-9, with a length of 9.',
    source:
      'https://github.com/mistralai/mistral-common, src/mistral_common/protocol/instruct/validator.py, `_validate_tool_call_id`',
  },
  {
    kinds: ['mistral'],
    refuses: endsWithAssistant,
    says: 'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
    source: 'https://github.com/mistralai/mistral-common, src/mistral_common/protocol/instruct/validator.py',
  },
  {
    kinds: ['mistral'],
    refuses: outside('temperature', 0, 1.5),
    says: '$: Input should be less than or equal to 1.5',
    source: 'https://docs.mistral.ai/api/#tag/chat: 0 to 1.5',
  },
  {
    kinds: ['mistral'],
    refuses: otherThan('reasoning_effort', ['high', 'none']),
    says: "$: Input should be 'high' or 'none'",
    source:
      '@mistralai/mistralai 2.7.0, `ReasoningEffort`; @ai-sdk/mistral 3.0.69, src/mistral-chat-options.ts',
  },
  {
    kinds: ['cerebras'],
    refuses: unknownIn(cerebrasMembers),
    says: "property '$' is unsupported (wrong_api_format)",
    source: '@cerebras/cerebras_cloud_sdk 1.91.0; https://inference-docs.cerebras.ai/resources/openai',
  },
  {
    kinds: ['cerebras'],
    refuses: has('frequency_penalty', 'presence_penalty', 'logit_bias'),
    says: "property '$' is unsupported",
    source: 'https://inference-docs.cerebras.ai/resources/openai: unsupported fields are 400',
  },
  {
    kinds: ['cerebras'],
    refuses: messageHas('assistant', 'reasoning_content'),
    says: "messages: property '$' is unsupported (wrong_api_format)",
    source: 'https://inference-docs.cerebras.ai/capabilities/reasoning: reasoning goes back as `reasoning`',
  },
  {
    kinds: ['cerebras'],
    models: ['llama*', 'qwen-3-*'],
    refuses: has('reasoning_effort'),
    says: '$ is not supported with this model',
    source: 'https://inference-docs.cerebras.ai/capabilities/reasoning',
  },
  {
    kinds: ['fireworks'],
    refuses: unknownIn(fireworksMembers),
    says: "Extra inputs are not permitted, field: '$'",
    source: 'github:anomalyco/opencode#4386',
  },
  {
    kinds: ['fireworks'],
    refuses: cacheMarkOtherThan(),
    says: "Extra inputs are not permitted, field: '$'",
    source: 'github:anomalyco/opencode#4386',
  },
  {
    kinds: ['nvidia'],
    refuses: has('prompt_cache_key', 'store', 'metadata', 'service_tier', 'verbosity', 'safety_identifier'),
    says: "[{'type': 'extra_forbidden', 'loc': ('body', '$'), 'msg': 'Extra inputs are not permitted'}]",
    source: 'github:sipeed/picoclaw#1019; github:NVIDIA/garak#748',
  },
  {
    kinds: ['github-models'],
    models: ['openai/gpt-4*', 'meta/*', 'mistral-ai/*'],
    refuses: has('prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'verbosity'),
    says: 'Unrecognized request argument supplied: $',
    source: 'github:zed-industries/zed#52000: the same service of Microsoft',
  },
  {
    kinds: ['databricks'],
    models: ['!*claude*', '*'],
    refuses: has('prompt_cache_key', 'store', 'metadata', 'verbosity', 'safety_identifier'),
    says: 'Bad request: json: unknown field "$"',
    source:
      'github:databricks/databricks-sdk-py#1263; LiteLLM 1.110.2, litellm/llms/databricks/chat/transformation.py, get_supported_openai_params',
  },
  {
    kinds: ['databricks'],
    models: ['*gpt-oss*', '*llama*'],
    refuses: ({ body }) =>
      objects(body['messages']).some(({ tool_calls: calls }) => objects(calls).length > 1)
        ? 'tool_calls'
        : undefined,
    says: 'Multiple tool calls are not supported. ($)',
    source: 'github:BerriAI/litellm#31633',
  },
];
