/** GLM models at Z.ai and BigModel: their traits, and the endpoint that takes the messages format. */
import type { ModelTraits } from 'sluice';
import { bearer } from '../http/http-channel.ts';
import type { MessagesSide } from './messages-side.ts';

/**
 * The endpoint for Claude Code, from GLM-4.5 on: https://docs.z.ai/devpack/tool/claude https://docs.bigmodel.cn/cn/guide/develop/claude; LiteLLM 1.110.2,
 * llms/bigmodel/messages.
 */
export const glmMessages: MessagesSide = {
  instead: ['/paas/v4', '/anthropic/v1'],
  headers: bearer,
  models: ['glm-4.5*', 'glm-4.6*', 'glm-4.7*', 'glm-5*'],
};

/** Traits of GLM models at both providers, by name pattern. */
export const glmTraits: Readonly<Record<string, ModelTraits>> = {
  '*': {
    reasoning: 'thinking',
    efforts: ['none'],
    // https://docs.z.ai/api-reference/llm/chat-completion: from GLM-4.5 on; `tool_choice` has `auto` alone.
    thinksByDefault: true,
    forcedTools: 'never',
    ranges: { temperature: { min: 0, max: 1 }, topP: { min: 0.01, max: 1 } },
    finishReasons: {
      sensitive: 'content_filter',
      network_error: 'length',
      model_context_window_exceeded: 'length',
    },
    outputLimitField: 'max_tokens',
    replaysReasoning: true,
    jsonSchema: false,
    refuses: [
      'choices',
      'logprobs',
      'topLogprobs',
      'seed',
      'frequencyPenalty',
      'presencePenalty',
      'verbosity',
    ],
  },
  'glm-4-*': { reasoning: 'none', thinksByDefault: false },
  'glm-5.2*': { efforts: ['none', 'high', 'max'] },
  // LiteLLM 1.110.2, `thinking_always_on`, llms/bigmodel: an effort in place of the switch.
  'glm-5.3*': { reasoning: 'effort', efforts: ['low', 'high', 'max'], stopsThinking: false },
};
