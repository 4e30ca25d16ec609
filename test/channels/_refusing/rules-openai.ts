import {
  both,
  cacheMarkOtherThan,
  has,
  isOneOf,
  otherThan,
  outside,
  unknownIn,
  unless,
  words,
} from './checks.ts';
import { openaiTakes, strictSchema, toolSchema } from './schemas.ts';
import type { Rule } from './table.ts';

/** Members of a request for chat completions: openai 6, resources/chat/completions/completions.d.ts, `ChatCompletionCreateParams`. */
export const officialMembers = words(`
    messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
    metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
    stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
  `);

/** Members of a response: openai 6, resources/responses/responses.d.ts, `ResponseCreateParams`. */
const responseMembers = words(`
    access_programs background context_management conversation image include input instructions max_output_tokens
    max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options
    temperature text tool_choice tools top_logprobs top_p truncation user
  `);

/** Kinds that serve OpenAI's models in OpenAI's format. */
const openai = ['openai', 'azure-openai', 'azure-foundry', 'github-models'];
const thinkers = ['*gpt-5*', '*gpt-6*', 'o3*', 'o4*', 'openai/o*'];
const notThinkers = ['*gpt-4*'];
const takesBreakpoints = ['*gpt-5.6*', '*gpt-6*'];
const vercel = '@ai-sdk/openai 3.0.141, src/chat/openai-chat-language-model.ts, `isReasoningModel`';
const efforts =
  'https://developers.openai.com/api/docs/guides/reasoning; @ai-sdk/openai 3.0.141, src/openai-language-model-capabilities.ts';

const effortsOf = (models: readonly string[], allowed: readonly string[]): readonly Rule[] => [
  {
    kinds: openai,
    models,
    refuses: otherThan('reasoning_effort', allowed),
    says: `Unsupported value: '$' is not supported with this model. Supported values are: ${allowed.join(', ')}.`,
    source: efforts,
  },
  {
    kinds: openai,
    models,
    wires: ['responses'],
    refuses: otherThan('reasoning.effort', allowed),
    says: `Unsupported value: '$' is not supported with this model. Supported values are: ${allowed.join(', ')}.`,
    source: efforts,
  },
];

/** OpenAI, and OpenAI's models at Microsoft. */
export const openaiRules: readonly Rule[] = [
  {
    kinds: openai,
    models: ['*gpt*', 'o3*'],
    refuses: unknownIn(officialMembers),
    says: 'Unrecognized request argument supplied: $',
    source: 'github:zed-industries/zed#52000; openai 6, `ChatCompletionCreateParams`',
  },
  {
    kinds: openai,
    wires: ['responses'],
    refuses: unknownIn(responseMembers),
    says: "Unknown parameter: '$'.",
    source: 'openai 6, `ResponseCreateParams`; github:router-for-me/CLIProxyAPI#897',
  },
  {
    kinds: ['openrouter'],
    wires: ['responses'],
    refuses: otherThan('store', [false]),
    says: 'Invalid request: $',
    source:
      'https://openrouter.ai/docs/api_reference/responses/error-handling; @openrouter/sdk 1.3.19, `ResponsesRequest.store`',
  },
  {
    kinds: ['openrouter'],
    wires: ['responses'],
    refuses: has('previous_response_id'),
    says: 'Invalid request: $',
    source: 'https://openrouter.ai/docs/api_reference/responses/error-handling',
  },
  {
    kinds: ['together'],
    wires: ['responses'],
    refuses: has('previous_response_id', 'store'),
    says: '$ is not supported',
    source: 'https://docs.together.ai/docs/inference/responses-api: no stored responses',
  },
  {
    kinds: ['together'],
    models: ['*', '!zai-org/GLM-5.3'],
    wires: ['responses'],
    refuses: has('model'),
    says: '$ is not supported in the Responses API',
    source: 'https://docs.together.ai/docs/inference/responses-api: supported models',
  },
  {
    kinds: ['azure-foundry'],
    models: ['Kimi*'],
    refuses: has('prompt_cache_key'),
    says: 'Unrecognized request argument supplied: $',
    source: 'github:zed-industries/zed#52000',
  },
  {
    kinds: openai,
    models: ['*', ...takesBreakpoints.map((name) => `!${name}`)],
    wires: ['chat-completions', 'responses'],
    refuses: cacheMarkOtherThan(),
    says: "Unknown parameter: '$'.",
    source:
      'https://developers.openai.com/api/docs/guides/prompt-caching: breakpoints from GPT-5.6 on; `cache_control` is no member of openai 6, `ChatCompletionContentPartText`',
  },
  {
    kinds: openai,
    models: takesBreakpoints,
    wires: ['chat-completions', 'responses'],
    refuses: cacheMarkOtherThan('prompt_cache_breakpoint'),
    says: "Unknown parameter: '$'.",
    source: 'openai 6, `ChatCompletionContentPartText.prompt_cache_breakpoint`',
  },
  {
    kinds: openai,
    models: thinkers,
    refuses: has('max_tokens'),
    says: "Unsupported parameter: '$' is not supported with this model. Use 'max_completion_tokens' instead.",
    source: vercel,
  },
  {
    kinds: openai,
    models: ['*gpt-5*', '*gpt-6*'],
    refuses: has('stop'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source:
      'github:huggingface/smolagents#1671 (5); github:huggingface/smolagents#1868 (5.1); github:huggingface/smolagents#1893 (5.2); github:CherryHQ/cherry-studio#17680 (5.6); github:bolna-ai/bolna#1019 (6)',
  },
  {
    kinds: openai,
    models: [...thinkers, '!*gpt-5.1*', '!*gpt-5.2*', '!*gpt-5.4*', '!*gpt-5.5*', '!*gpt-5.6*'],
    refuses: has('temperature', 'top_p', 'logprobs', 'top_logprobs'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: vercel,
  },
  {
    kinds: openai,
    models: ['*gpt-5.1*', '*gpt-5.2*', '*gpt-5.4*', '*gpt-5.5*', '*gpt-5.6*'],
    refuses: unless(
      has('temperature', 'top_p', 'logprobs', 'top_logprobs'),
      isOneOf('reasoning_effort', ['none']),
    ),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: `${vercel}, supportsNonReasoningParameters`,
  },
  {
    kinds: openai,
    models: thinkers,
    refuses: has('presence_penalty', 'frequency_penalty', 'logit_bias'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: vercel,
  },
  {
    kinds: openai,
    models: ['o3*', 'o4*'],
    refuses: has('stop'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: 'openai 6, `ChatCompletionCreateParams.stop`: not supported with o3 and o4-mini',
  },
  {
    kinds: openai,
    models: [...thinkers, '!*gpt-5.1*', '!*gpt-5.2*', '!*gpt-5.4*', '!*gpt-5.5*', '!*gpt-5.6*'],
    wires: ['responses'],
    refuses: has('temperature', 'top_p', 'top_logprobs'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: '@ai-sdk/openai 3.0.141, src/responses/openai-responses-language-model.ts',
  },
  {
    kinds: openai,
    models: notThinkers,
    refuses: has('reasoning_effort'),
    says: 'Unrecognized request argument supplied: $',
    source: 'https://developers.openai.com/api/docs/guides/reasoning',
  },
  {
    kinds: openai,
    models: notThinkers,
    wires: ['responses'],
    refuses: has('reasoning.effort'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: 'https://developers.openai.com/api/docs/guides/reasoning',
  },
  ...effortsOf(['*gpt-5', '*gpt-5-mini', '*gpt-5-nano'], ['minimal', 'low', 'medium', 'high']),
  ...effortsOf(['*gpt-5.1'], ['none', 'low', 'medium', 'high']),
  ...effortsOf(
    ['*gpt-6-sol', '*gpt-6-luna', '*gpt-6.1-terra'],
    ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  ),
  ...effortsOf(['*gpt-6-astra', '*gpt-6.1-sol'], ['low', 'medium', 'high', 'xhigh', 'max']),
  ...effortsOf(['o3*', 'o4*'], ['low', 'medium', 'high']),
  {
    kinds: openai,
    models: ['*gpt-5.2*', '*gpt-5.4*', '*gpt-5.5*'],
    refuses: both(has('reasoning_effort'), has('tools'), otherThan('reasoning_effort', ['none'])),
    says: 'Function tools with $ are not supported for this model in /v1/chat/completions. Please use /v1/responses instead.',
    source: 'github:openai/openai-openapi#541; github:livekit/agents#5088',
  },
  {
    kinds: openai,
    models: ['*gpt-5.6*', '*gpt-6*'],
    refuses: unless(has('tools'), isOneOf('reasoning_effort', ['none'])),
    says: "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. To use function $, use /v1/responses or set reasoning_effort to 'none'.",
    source: 'github:BerriAI/litellm#34569: also where no effort is said; github:moltis-org/moltis#1298',
  },
  {
    kinds: openai,
    wires: ['chat-completions', 'responses'],
    refuses: strictSchema(openaiTakes),
    says: "Invalid schema for response_format 'answer': In context=(), '$' is not permitted or is required.",
    source: 'https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas',
  },
  {
    kinds: openai,
    wires: ['chat-completions', 'responses'],
    refuses: toolSchema(openaiTakes),
    says: "Invalid schema for function: In context=(), '$' is not permitted or is required.",
    source: 'https://developers.openai.com/api/docs/guides/function-calling#strict-mode',
  },
  {
    kinds: ['*'],
    refuses: outside('temperature', 0, 2),
    says: "Invalid '$': decimal above maximum value.",
    source: 'openai 6, `ChatCompletionCreateParams.temperature`',
  },
];
