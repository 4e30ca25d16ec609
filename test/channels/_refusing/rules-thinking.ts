import {
  both,
  forcesTool,
  has,
  isOneOf,
  lacksReasoning,
  otherThan,
  unless,
  whole,
  type Check,
} from './checks.ts';
import type { Rule } from './table.ts';

/** It thinks unless it is told not to: by `thinking`, or by an effort of `none`. */
const thinksByThinking: Check = unless(
  unless(() => 'thinking', isOneOf('thinking.type', ['disabled'])),
  isOneOf('reasoning_effort', ['none']),
);
/** Qwen that thinks unless it is told not to, and Qwen that thinks only when it is told to. */
const thinksByDefault: Check = unless(() => 'enable_thinking', isOneOf('enable_thinking', [false]));
const thinksOnDemand: Check = isOneOf('enable_thinking', [true]);

const openQwen = ['qwen3-*b', 'qwen3-*b-a*b', '*Qwen3-*B', '*Qwen3-*B-A*B'];
const defaultQwen = ['qwen3.5*', 'qwen3.6*', 'qwen3.7*', 'qwen3.8*', ...openQwen];
const json: Check = isOneOf('response_format.type', ['json_object', 'json_schema']);
const moonshot = { kinds: ['moonshot'], models: ['kimi-k2.5', 'kimi-k2.6'] } as const;
const sdk = '@ai-sdk/moonshotai 2.0.61, src/moonshotai-chat-language-model.ts';

/** Rules for parameters that models refuse with reasoning, and for requesting reasoning. */
export const thinkingRules: readonly Rule[] = [
  {
    kinds: ['deepseek'],
    models: ['deepseek-v4*', 'deepseek-reasoner', 'deepseek-flash'],
    refuses: both(forcesTool, thinksByThinking),
    says: 'deepseek-reasoner does not support this $',
    source: 'github:cloudwego/eino#994',
  },
  {
    kinds: ['deepseek'],
    models: ['deepseek-v4*', 'deepseek-flash'],
    refuses: both(lacksReasoning, thinksByThinking),
    says: 'The `reasoning_content` in the thinking mode must be passed back to the API. ($)',
    source: 'github:decolua/9router#773; LiteLLM 1.110.2, litellm/llms/deepseek/chat/transformation.py',
  },
  {
    ...moonshot,
    refuses: both(forcesTool, thinksByThinking),
    says: "$ 'specified' is incompatible with thinking enabled",
    source: 'github:can1357/oh-my-pi#1077; github:can1357/oh-my-pi#827',
  },
  {
    ...moonshot,
    refuses: both(lacksReasoning, thinksByThinking),
    says: 'thinking is enabled but reasoning_content is missing in assistant tool call message ($)',
    source: 'github:QuantumNous/new-api#3121',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k2.7*', 'kimi-k3*', 'kimi-k2-thinking*'],
    refuses: lacksReasoning,
    says: 'thinking is enabled but reasoning_content is missing in assistant tool call message ($)',
    source:
      'github:QuantumNous/new-api#3121; LiteLLM 1.110.2, litellm/llms/moonshot/chat/transformation.py, fill_reasoning_content',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k3*'],
    refuses: has('thinking'),
    says: '$ is not supported by this model',
    source: `${sdk}: Kimi K3 always reasons and does not accept the thinking field`,
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k3*'],
    refuses: otherThan('reasoning_effort', ['low', 'high', 'max']),
    says: '$: invalid value',
    source: `${sdk}, \`reasoningEffort\``,
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k2.7*'],
    refuses: isOneOf('thinking.type', ['disabled']),
    says: 'thinking cannot be disabled ($)',
    source: `${sdk}: Kimi K2.7 thinking cannot be disabled`,
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k2*', 'moonshot-v1*'],
    refuses: has('reasoning_effort'),
    says: '$ is not supported by this model',
    source: `${sdk}: reasoningEffort is only supported by Kimi K3`,
  },
  {
    kinds: ['dashscope'],
    models: openQwen,
    refuses: both(whole, thinksByDefault),
    says: 'parameter.enable_thinking must be set to false for non-streaming calls ($)',
    source: 'github:langchain4j/langchain4j#3974; github:legeling/PromptHub#9',
  },
  {
    kinds: ['modelscope'],
    models: openQwen,
    refuses: both(whole, thinksByDefault),
    says: 'enable thinking can not be support when `stream=False`. ($)',
    source: 'github:musistudio/claude-code-router#948',
  },
  {
    kinds: ['dashscope'],
    models: defaultQwen,
    refuses: both(forcesTool, thinksByDefault),
    says: '<400> InternalError.Algo.InvalidParameter: The $ parameter does not support being set to required or object in thinking mode',
    source: 'github:cloudwego/eino#994; github:QwenLM/qwen-code#7659',
  },
  {
    kinds: ['dashscope'],
    models: ['*', ...defaultQwen.map((name) => `!${name}`)],
    refuses: both(forcesTool, thinksOnDemand),
    says: '<400> InternalError.Algo.InvalidParameter: The $ parameter does not support being set to required or object in thinking mode',
    source: 'github:cloudwego/eino#994',
  },
  {
    kinds: ['dashscope'],
    models: openQwen,
    refuses: both(json, thinksByDefault),
    says: 'Json mode response is not supported when enable_thinking is true ($)',
    source: 'https://www.alibabacloud.com/help/en/model-studio/error-code',
  },
  {
    kinds: ['bedrock'],
    wires: ['converse'],
    models: ['*nova-2*'],
    refuses: otherThan('additionalModelRequestFields.reasoningConfig.maxReasoningEffort', [
      'low',
      'medium',
      'high',
    ]),
    says: 'Malformed input request: $',
    source: 'https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html',
  },
  {
    kinds: ['bedrock'],
    wires: ['converse'],
    models: ['*nova-2*'],
    refuses: both(
      isOneOf('additionalModelRequestFields.reasoningConfig.maxReasoningEffort', ['high']),
      has('inferenceConfig.temperature', 'inferenceConfig.topP', 'inferenceConfig.maxTokens'),
    ),
    says: 'temperature, topP and maxTokens cannot be set with $ high',
    source: 'https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html: unset with high',
  },
];
