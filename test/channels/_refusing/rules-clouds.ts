import {
  both,
  cacheMarkOtherThan,
  has,
  isJson,
  isOneOf,
  lacks,
  objects,
  outside,
  unknownIn,
  valueAt,
  words,
  type Check,
} from './checks.ts';
import { claudeTakes, cohereTakes, schemaAt, toolSchema } from './schemas.ts';
import type { Rule } from './table.ts';

const converse = { kinds: ['bedrock'], wires: ['converse'] } as const;
const api = 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html';
const types = '@aws-sdk/client-bedrock-runtime 3.1164.0, dist-types/models, `ConverseRequest`';

const choiceOf = ({ body }: { readonly body: unknown }): readonly string[] => {
  const choice = valueAt(body, 'toolConfig.toolChoice');
  return isJson(choice) ? Object.keys(choice) : [];
};

const choiceOtherThan =
  (...taken: readonly string[]): Check =>
  (got) =>
    choiceOf(got).find((name) => !taken.includes(name));

const doesNotAlternate: Check = ({ body }) => {
  const roles = objects(body['messages']).map(({ role }) => role);
  const index = roles.findIndex((role, at) => (at === 0 ? role !== 'user' : role === roles[at - 1]));
  return index < 0 ? undefined : `messages.${index}`;
};

const usesToolsWithoutConfig: Check = ({ body }) =>
  body['toolConfig'] === undefined && /"tool(?:Use|Result)"/.test(JSON.stringify(body['messages'] ?? []))
    ? 'toolConfig'
    : undefined;

const emptyText: Check = ({ body }) => {
  const index = objects(body['messages']).findIndex(({ content }) =>
    objects(content).some(({ text }) => text === ''),
  );
  return index < 0 ? undefined : `messages.${index}.content`;
};

const hasForeignField =
  (...taken: readonly string[]): Check =>
  ({ body }) => {
    const fields = body['additionalModelRequestFields'];
    return isJson(fields) ? Object.keys(fields).find((name) => !taken.includes(name)) : undefined;
  };

/** The members of Cohere's chat: cohere-ai 8.1.0, api/resources/v2/client/requests/V2ChatRequest.d.ts */
const cohereMembers = words(`
    model messages tools strict_tools documents citation_options response_format safety_mode max_tokens stop_sequences
    temperature seed frequency_penalty presence_penalty k p logprobs tool_choice thinking priority stream
  `);
const cohere = { kinds: ['cohere'], wires: ['cohere'] } as const;
const cohereTypes = 'cohere-ai 8.1.0, api/resources/v2/client/requests/V2ChatRequest.d.ts';

const strictTool: Check = ({ body }) =>
  objects(body['tools']).some((tool) => isJson(tool['function']) && 'strict' in tool['function'])
    ? 'strict'
    : undefined;

const emptyBesideCalls: Check = ({ body }) => {
  const index = objects(body['messages']).findIndex(
    ({ content, tool_calls: calls }) => objects(calls).length > 0 && content === '',
  );
  return index < 0 ? undefined : `messages[${index}].content`;
};

/** Converse on Bedrock, and Cohere's own API. */
export const cloudRules: readonly Rule[] = [
  {
    ...converse,
    refuses: unknownIn(
      words(`
    messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
    additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig
  `),
    ),
    says: 'Unexpected field: $',
    source: types,
  },
  {
    ...converse,
    refuses: unknownIn(['maxTokens', 'temperature', 'topP', 'stopSequences'], 'inferenceConfig'),
    says: 'Unexpected field: $',
    source: types,
  },
  {
    ...converse,
    refuses: outside('inferenceConfig.temperature', 0, 1),
    says: 'Value at $ failed to satisfy constraint: Member must have value less than or equal to 1',
    source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html',
  },
  {
    ...converse,
    models: ['*meta.llama*', '*deepseek.r1*'],
    refuses: choiceOtherThan('auto'),
    says: "This model doesn't support the toolConfig.toolChoice.$ field. Remove toolConfig.toolChoice.$ and try again.",
    source: 'github:maximhq/bifrost#3196; github:run-llama/llama_index#19886',
  },
  {
    ...converse,
    models: ['*deepseek.v3*', '*mistral.mistral-large*', '*zai.glm*', '!*zai.glm-5.3*'],
    refuses: choiceOtherThan('auto', 'any'),
    says: "This model doesn't support the toolConfig.toolChoice.$ field. Remove toolConfig.toolChoice.$ and try again.",
    source:
      'langchain-aws 1.9.1, chat_models/bedrock_converse.py, `supports_tool_choice_values` (@langchain/aws alike)',
  },
  {
    ...converse,
    models: ['*deepseek.v3*'],
    refuses: both(
      choiceOtherThan('auto'),
      isOneOf('additionalModelRequestFields.reasoning_effort', ['high']),
    ),
    says: 'Thinking mode does not support this tool choice: toolConfig.toolChoice.$',
    source:
      'langchain-aws 1.9.1, utils.py, `thinking_forced_tool_use_unsupported`, `thinking_enabled_in_params`',
  },
  {
    ...converse,
    models: ['*openai.gpt-5*', '*openai.gpt-6*'],
    refuses: has('additionalModelRequestFields.reasoning_effort', 'additionalModelRequestFields.thinking'),
    says: "Unknown parameter: '$'.",
    source:
      'github:stdapi-ai/stdapi.ai#283; @ai-sdk/amazon-bedrock 4.0.186, src/bedrock-chat-language-model.ts',
  },
  {
    ...converse,
    models: ['*openai.gpt-oss*'],
    refuses: has('additionalModelRequestFields.reasoning', 'additionalModelRequestFields.thinking'),
    says: "Unknown parameter: '$'.",
    source: '@ai-sdk/amazon-bedrock 4.0.186, src/bedrock-chat-language-model.ts, `isOpenAIGptOssModel`',
  },
  {
    ...converse,
    models: ['*openai.gpt-5*', '*openai.gpt-6*', '*xai.grok*'],
    refuses: has('inferenceConfig.stopSequences'),
    says: "This model doesn't support the stopSequences field. Remove stopSequences and try again.",
    source: 'LiteLLM 1.110.2, litellm/llms/bedrock/common_utils.py, `bedrock_rejects_stop_sequences`',
  },
  {
    ...converse,
    models: ['*openai.gpt-5*', '*openai.gpt-6*', '*xai.grok*', '*moonshotai.kimi-k3*'],
    refuses: outside('inferenceConfig.maxTokens', 16, Infinity),
    says: 'Value at $ failed to satisfy constraint: Member must have value greater than or equal to 16',
    source:
      'LiteLLM 1.110.2, litellm/llms/bedrock/chat/converse_transformation.py, BEDROCK_OPENAI_COMPAT_MIN_MAX_TOKENS',
  },
  {
    ...converse,
    models: [
      '*meta.*',
      '*amazon.*',
      '*cohere.*',
      '*ai21.*',
      '*deepseek.r1*',
      '*writer.*',
      '*mistral.mistral-large-24*',
    ],
    refuses: has('outputConfig.textFormat'),
    says: "This model doesn't support the outputConfig.textFormat field. Remove outputConfig.textFormat and try again.",
    source:
      'https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html; langchain-aws 1.9.1, _profiles.py, `structured_output`',
  },
  {
    ...converse,
    models: ['*deepseek.r1*'],
    refuses: has('toolConfig'),
    says: "This model doesn't support tool use.",
    source:
      'https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html',
  },
  {
    ...converse,
    models: ['*cohere.*', '*ai21.*', '*amazon.titan*'],
    refuses: choiceOtherThan('auto'),
    says: "This model doesn't support the toolConfig.toolChoice.$ field. Remove toolConfig.toolChoice.$ and try again.",
    source:
      'LiteLLM 1.110.2, litellm/llms/bedrock/chat/converse_transformation.py, get_supported_openai_params',
  },
  {
    ...converse,
    models: [
      '*meta.*',
      '*mistral.*',
      '*deepseek.*',
      '*qwen.*',
      '*openai.*',
      '*cohere.*',
      '*moonshot*',
      '*zai.*',
      '*minimax.*',
      '*google.*',
    ],
    refuses: ({ body }) => (JSON.stringify(body).includes('"cachePoint"') ? 'cachePoint' : undefined),
    says: 'You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.',
    source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html: Claude and Nova alone',
  },
  {
    ...converse,
    refuses: doesNotAlternate,
    says: 'A conversation must alternate between user and assistant roles, and begin with a user. ($)',
    source: api,
  },
  {
    ...converse,
    refuses: usesToolsWithoutConfig,
    says: 'The $ field must be defined when using toolUse and toolResult content blocks.',
    source: 'LiteLLM 1.110.2, litellm/llms/bedrock/chat/converse_transformation.py, `add_dummy_tool`',
  },
  {
    ...converse,
    refuses: emptyText,
    says: 'The text field in the ContentBlock object at $ is blank. Add text to the text field, and try again.',
    source: api,
  },
  {
    ...converse,
    models: ['*amazon.nova*'],
    refuses: hasForeignField('inferenceConfig', 'reasoningConfig'),
    says: 'Malformed input request: #: extraneous key [$] is not permitted, please reformat your input and try again.',
    source: 'https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html',
  },
  {
    ...converse,
    models: ['*meta.*', '*mistral.*', '*cohere.*'],
    refuses: hasForeignField('k', 'top_k'),
    says: 'Malformed input request: #: extraneous key [$] is not permitted, please reformat your input and try again.',
    source: 'github:vertesia/llumiverse#11',
  },
  {
    ...converse,
    refuses: schemaAt('outputConfig.textFormat.structure.jsonSchema.schema', claudeTakes),
    says: "$: for 'object' type, 'additionalProperties' must be explicitly set to false",
    source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html',
  },
  {
    kinds: ['bedrock'],
    models: ['*xai.grok*'],
    refuses: has('stop', 'frequency_penalty', 'presence_penalty'),
    says: "This model doesn't support the $ field. Remove $ and try again.",
    source: 'LiteLLM 1.110.2, llms/bedrock/chat/chat_completions, CHAT_COMPLETIONS_REFUSED_PARAMS_BY_FAMILY',
  },
  {
    kinds: ['bedrock'],
    models: ['*xai.grok-4.6*', '*xai.grok-4.7*'],
    refuses: isOneOf('reasoning_effort', ['none', 'minimal']),
    says: 'Unsupported value: $',
    source:
      'LiteLLM 1.110.2, llms/bedrock/chat/chat_completions, CHAT_COMPLETIONS_REFUSED_REASONING_EFFORTS_BY_FAMILY',
  },
  {
    kinds: ['bedrock'],
    models: ['*openai.gpt-5.6*', '*openai.gpt-6*'],
    refuses: has('max_tokens'),
    says: "Unsupported parameter: '$' is not supported with this model.",
    source: 'LiteLLM 1.110.2, llms/bedrock/chat/chat_completions, `with_max_completion_tokens`',
  },
  {
    kinds: ['bedrock'],
    refuses: cacheMarkOtherThan(),
    says: 'Unknown parameter: $',
    source: 'LiteLLM 1.110.2, llms/bedrock/chat/chat_completions',
  },
  {
    ...cohere,
    refuses: unknownIn(cohereMembers),
    says: "unknown field: parameter '$' is not a valid field. For proper usage, please refer to https://docs.cohere.com/reference/chat",
    status: 422,
    source: 'github:OpenRouterTeam/openrouter-examples#71; github:NVIDIA/garak#1202',
  },
  {
    ...cohere,
    refuses: strictTool,
    says: "unknown field: parameter '$' is not a valid field.",
    status: 422,
    source: 'github:OpenRouterTeam/openrouter-examples#71',
  },
  {
    ...cohere,
    refuses: cacheMarkOtherThan(),
    says: "unknown field: parameter '$' is not a valid field.",
    status: 422,
    source: 'github:OpenRouterTeam/openrouter-examples#71',
  },
  {
    ...cohere,
    refuses: ({ body: { tool_choice: choice } }) =>
      choice === undefined || choice === 'REQUIRED' || choice === 'NONE' ? undefined : 'tool_choice',
    says: 'invalid request: $ must be REQUIRED or NONE.',
    source: 'cohere-ai 8.1.0, api/types/V2ChatRequestToolChoice.d.ts',
  },
  {
    ...cohere,
    refuses: both(has('tool_choice'), lacks('tools')),
    says: 'invalid request: $ is set without tools.',
    source: cohereTypes,
  },
  {
    ...cohere,
    refuses: both(has('response_format'), has('tools')),
    says: 'invalid request: $ is not supported in combination with tools.',
    source: 'cohere-ai 8.1.0, api/types/ResponseFormatV2.d.ts: Limitation',
  },
  {
    ...cohere,
    refuses: schemaAt('response_format.json_schema', cohereTakes),
    says: 'invalid request: $ is not supported in a JSON schema.',
    source: 'https://docs.cohere.com/v2/docs/structured-outputs#unsupported-schema-features',
  },
  {
    ...cohere,
    refuses: (got) => (got.body['strict_tools'] === true ? toolSchema(cohereTakes, true)(got) : undefined),
    says: 'invalid request: $ is not supported with strict_tools.',
    source: 'https://docs.cohere.com/v2/docs/structured-outputs#unsupported-schema-features',
  },
  {
    ...cohere,
    refuses: outside('k', 0, 500),
    says: 'invalid request: $ must be between 0 and 500.',
    source: cohereTypes,
  },
  {
    ...cohere,
    refuses: outside('p', 0.01, 0.99),
    says: 'invalid request: $ must be between 0.01 and 0.99.',
    source: cohereTypes,
  },
  {
    ...cohere,
    refuses: outside('frequency_penalty', 0, 1),
    says: 'invalid request: $ must be between 0 and 1.',
    source: cohereTypes,
  },
  {
    ...cohere,
    refuses: outside('presence_penalty', 0, 1),
    says: 'invalid request: $ must be between 0 and 1.',
    source: cohereTypes,
  },
  {
    ...cohere,
    refuses: outside('temperature', 0, 1),
    says: 'invalid request: $ must be between 0 and 1.',
    source: 'github:SillyTavern/SillyTavern#2916',
  },
  {
    ...cohere,
    models: ['*', '!*reasoning*', '!*command-a-plus*', '!*north*'],
    refuses: has('thinking'),
    says: 'invalid request: $ is not supported by this model.',
    source: 'https://docs.cohere.com/docs/reasoning',
  },
  {
    ...cohere,
    refuses: emptyBesideCalls,
    says: 'invalid request: $ must not be empty.',
    source:
      'issue reports of `content: ""` beside tool calls; cohere-ai 8.1.0, api/types/AssistantMessage.d.ts: content is optional',
  },
];
