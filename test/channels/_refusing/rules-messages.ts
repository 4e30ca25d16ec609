import {
  both,
  has,
  isOneOf,
  objects,
  otherThan,
  outside,
  roleOtherThan,
  unless,
  type Check,
} from './checks.ts';
import type { Rule } from './table.ts';

const wires = ['messages'];

/** A turn that called tools and does not begin with a thought. */
const lacksThought: Check = ({ body }) => {
  const index = objects(body['messages']).findIndex(({ content }) => {
    const blocks = objects(content);
    return (
      blocks.some(({ type }) => type === 'tool_use') &&
      !blocks.some(
        ({ type, thinking }) => type === 'thinking' && typeof thinking === 'string' && thinking !== '',
      )
    );
  });
  return index < 0 ? undefined : `messages.${index}.content`;
};

const isOff = isOneOf('thinking.type', ['disabled']);
const thinks: Check = unless(() => 'thinking', isOff);

/** A tool that says that it is a function. */
const typedTool: Check = ({ body }) => {
  const index = objects(body['tools']).findIndex(({ type }) => type === 'custom');
  return index < 0 ? undefined : `tools[${index}].type`;
};

const markedTool: Check = ({ body }) => {
  const index = objects(body['tools']).findIndex((tool) => tool['cache_control'] !== undefined);
  return index < 0 ? undefined : `tools.${index}.cache_control`;
};

const fireworks = 'https://docs.fireworks.ai/tools-sdks/anthropic-compatibility';

/** Providers of chat completions that have an endpoint for clients of Anthropic's API. */
export const messagesRules: readonly Rule[] = [
  {
    kinds: ['deepseek'],
    wires,
    refuses: roleOtherThan('user', 'assistant'),
    says: 'Failed to deserialize the JSON body into the target type: $: unknown variant `system`, expected `user` or `assistant`',
    source: 'github:anthropics/claude-code#63569; https://api-docs.deepseek.com/api/create-message',
  },
  {
    kinds: ['zai', 'zhipu'],
    wires,
    refuses: roleOtherThan('user', 'assistant'),
    says: "$: Input should be 'user' or 'assistant'",
    status: 422,
    source: 'github:zai-org/GLM-5#74',
  },
  {
    kinds: ['minimax'],
    wires,
    refuses: roleOtherThan('user', 'assistant'),
    says: 'invalid params, chat content has invalid message role: system (2013) ($)',
    source: 'github:MiniMax-AI/MiniMax-M2.7#43',
  },
  {
    kinds: ['dashscope'],
    wires,
    refuses: roleOtherThan('user', 'assistant'),
    says: "$ must be either 'user' or 'assistant', but got 'system'",
    source: 'https://docs.qwencloud.com/api-reference/chat/anthropic; github:QwenLM/Qwen#2244',
  },
  {
    kinds: ['deepseek'],
    wires,
    refuses: both(isOff, has('output_config.effort')),
    says: 'thinking options type cannot be disabled when reasoning_effort is set ($)',
    source: 'github:deepseek-ai/DeepSeek-V3#1397',
  },
  {
    kinds: ['deepseek'],
    wires,
    refuses: both(lacksThought, thinks),
    says: 'The `content[].thinking` in the thinking mode must be passed back to the API. ($)',
    source: 'github:decolua/9router#2397; github:NousResearch/hermes-agent#15700',
  },
  {
    kinds: ['deepseek'],
    wires,
    refuses: both(isOneOf('tool_choice.type', ['tool']), thinks),
    says: 'deepseek-reasoner does not support this $',
    source: 'github:maximhq/bifrost#5176',
  },
  {
    kinds: ['deepseek'],
    wires,
    refuses: typedTool,
    says: '$: unknown variant `custom`',
    source: 'LiteLLM 1.110.2, litellm/llms/deepseek/messages/transformation.py',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k2.5*', 'kimi-k2.6*', 'kimi-k2.7*', 'kimi-k3*'],
    wires,
    refuses: both(lacksThought, thinks),
    says: 'thinking is enabled but reasoning_content is missing in assistant tool call message ($)',
    source: 'github:farion1231/cc-switch#3377; github:NousResearch/hermes-agent#17455',
  },
  {
    kinds: ['moonshot'],
    models: ['kimi-k2.7*'],
    wires,
    refuses: otherThan('thinking.type', ['enabled']),
    says: 'invalid thinking: only type=enabled is allowed for this model ($)',
    source: 'github:MoonshotAI/Kimi-K2#141',
  },
  {
    kinds: ['minimax'],
    wires,
    refuses: outside('temperature', 0.000001, 1),
    says: 'invalid params, $ must be in (0, 1] (2013)',
    source: 'https://platform.minimax.io/docs/api-reference/text-chat-anthropic',
  },
  {
    kinds: ['dashscope'],
    wires,
    refuses: otherThan('thinking.type', ['enabled', 'disabled']),
    says: "Only 'enabled' and 'disabled' are supported for thinking; 'adaptive' is not supported. ($)",
    source: 'github:anthropics/claude-code#29531',
  },
  {
    kinds: ['fireworks'],
    wires,
    refuses: isOneOf('thinking.type', ['adaptive']),
    says: '$: the adaptive thinking type is not supported',
    source: fireworks,
  },
  {
    kinds: ['fireworks'],
    wires,
    refuses: has('service_tier', 'inference_geo', 'container'),
    says: "Extra inputs are not permitted, field: '$'",
    source: fireworks,
  },
  {
    kinds: ['fireworks'],
    wires,
    refuses: markedTool,
    says: "Extra inputs are not permitted, field: '$'",
    source: `${fireworks}; github:badlogic/pi-mono, \`supportsCacheControlOnTools\``,
  },
];
