import {
  both,
  has,
  isOneOf,
  lacks,
  listsTexts,
  otherThan,
  outside,
  roleOtherThan,
  toolOtherThanFunction,
} from './checks.ts';
import type { Rule } from './table.ts';

const fourRoles = roleOtherThan('system', 'user', 'assistant', 'tool');

const friendli = { kinds: ['friendli'] } as const;
const friendliBody = 'https://pypi.org/project/friendli/0.16.5, core/models/serverlesschatcompletionbody.py';
const friendliMessages = 'https://pypi.org/project/friendli/0.16.5, core/models';
/** Neither Claude nor a model of OpenAI. */
const others = ['*', '!claude*', '!openai-*'];
const cortex = 'https://pypi.org/project/pydantic-ai-slim/2.68.0, providers/snowflake.py, `model_profile`';
const wandbErrors =
  'https://docs.wandb.ai/support/inference/articles/api-error-code-422-invalid-request-parameters';
const wandbReasoning = 'https://docs.wandb.ai/inference/response-settings/reasoning';
const nebiusPage = 'https://docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion';

/** Parameters that further hosts of models refuse or ignore. Read on 2026-11-26. */
export const servingRules: readonly Rule[] = [
  { ...friendli, refuses: fourRoles, says: '$: unknown role', source: `${friendliMessages}/message.py` },
  {
    ...friendli,
    // A user's turn alone may have parts.
    refuses: listsTexts('system', 'assistant', 'tool'),
    says: '$: must be a string',
    source: `${friendliMessages}/systemmessage.py, assistantmessage.py, toolmessage.py`,
  },
  {
    ...friendli,
    refuses: otherThan('reasoning_effort', ['minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultracode']),
    says: '$: invalid value',
    source: friendliBody,
  },
  {
    ...friendli,
    refuses: both(has('response_format'), has('tools')),
    says: '$ is unsupported when tools is specified',
    source: friendliBody,
  },
  {
    ...friendli,
    refuses: both(has('min_tokens'), has('tools', 'response_format')),
    says: '$ is unsupported when tools or response_format is specified',
    source: friendliBody,
  },
  {
    ...friendli,
    refuses: toolOtherThanFunction,
    says: '$: only function is supported',
    source: `${friendliMessages}/tool.py`,
  },
  {
    ...friendli,
    wires: ['messages'],
    refuses: roleOtherThan('user', 'assistant'),
    says: '$: must be user or assistant',
    source: `${friendliMessages}/messagesinputmessage.py`,
  },
  {
    ...friendli,
    wires: ['messages'],
    refuses: both(has('thinking.budget_tokens'), otherThan('thinking.type', ['enabled'])),
    says: '$ must not be provided when type is disabled or adaptive',
    source: `${friendliMessages}/messagesthinkingconfig.py`,
  },
  {
    ...friendli,
    wires: ['messages'],
    refuses: both(lacks('thinking.budget_tokens'), isOneOf('thinking.type', ['enabled'])),
    says: '$ is required when type is enabled',
    source: `${friendliMessages}/messagesthinkingconfig.py`,
  },
  {
    ...friendli,
    wires: ['messages'],
    refuses: otherThan('output_config.effort', [
      'minimal',
      'low',
      'medium',
      'high',
      'xhigh',
      'max',
      'ultracode',
    ]),
    says: '$: invalid value',
    source: `${friendliMessages}/messagesoutputconfig.py`,
  },
  {
    kinds: ['snowflake'],
    models: others,
    refuses: has('tools', 'tool_choice'),
    says: '$ is not supported by this model',
    source: `${cortex}: tools is an error for other model families`,
  },
  {
    kinds: ['snowflake'],
    models: others,
    refuses: has('response_format'),
    says: '$ is silently ignored by this model',
    source: `${cortex}: response_format is silently ignored for other model families`,
  },
  {
    kinds: ['snowflake'],
    refuses: has('max_tokens'),
    says: '$ is deprecated, use max_completion_tokens: the answer ends after 4096 tokens',
    source: 'github:anomalyco/opencode#11455; github:langchain-ai/langchain-snowflake#132',
  },
  {
    kinds: ['wandb', 'nebius'],
    refuses: outside('temperature', 0, 2),
    says: '$ must be between 0 and 2',
    source: `${wandbErrors}; ${nebiusPage}`,
  },
  {
    kinds: ['wandb', 'nebius'],
    refuses: toolOtherThanFunction,
    says: '$: only functions are supported',
    source: `https://docs.wandb.ai/inference/response-settings/tool-calling; ${nebiusPage}`,
  },
  {
    kinds: ['wandb'],
    models: [
      'google/gemma-4*',
      'nvidia/*Nemotron-3*',
      'zai-org/GLM-5.1',
      'Qwen/Qwen3.5-*',
      'deepseek-ai/*V4*',
    ],
    refuses: has('reasoning_effort'),
    says: '$ does not switch the reasoning of this model',
    source: `${wandbReasoning}: chat_template_kwargs.enable_thinking switches reasoning`,
  },
  {
    kinds: ['wandb'],
    models: ['moonshotai/*', 'MiniMaxAI/*', 'openai/gpt-oss*', 'Qwen/*-Thinking-*'],
    refuses: isOneOf('chat_template_kwargs.enable_thinking', [false]),
    says: '$: reasoning is always on and cannot be disabled',
    source: wandbReasoning,
  },
  {
    kinds: ['nebius'],
    refuses: fourRoles,
    says: '$: Input should be system, user, assistant or tool',
    source: `${nebiusPage}; github:PrimeIntellect-ai/prime-agent#715: aligned with the live OpenAPI document`,
  },
  {
    kinds: ['nebius'],
    models: ['openai/gpt-oss*'],
    refuses: otherThan('reasoning_effort', ['low', 'medium', 'high']),
    says: '$: Input should be low, medium or high',
    source: `${nebiusPage}; https://docs.studio.nebius.com/api-reference/inference/create-chat-completion`,
  },
];
