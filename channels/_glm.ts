import type { ModelTraits } from 'sluice';

/** What GLM can do, at both addresses where it is served. */
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
