import { gptOss } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Members beyond the common ones. @cerebras/cerebras_cloud_sdk 1.91.0, resources/chat/completions.d.ts */
const cerebrasMembers = [
  'clear_thinking',
  'disable_reasoning',
  'min_completion_tokens',
  'min_tokens',
  'model_parameters',
  'prediction',
  'reasoning_format',
  'stream_options.include_usage',
];

/** Cerebras. Penalties and the bias of tokens are answered 400. https://inference-docs.cerebras.ai/resources/openai */
export default openaiLike({
  name: 'cerebras',
  catalogue: ['cerebras'],
  baseUrl: 'https://api.cerebras.ai/v1',
  models: ['llama*', 'gpt-oss-*', 'qwen-3-*', 'zai-glm-*'],
  discover: true,
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  // https://inference-docs.cerebras.ai/capabilities/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  // https://inference-docs.cerebras.ai/api-reference/chat-completions
  developerRole: true,
  traits: {
    '*': {
      reasoning: 'none',
      reasoningField: 'reasoning',
      refuses: [
        'frequencyPenalty',
        'presencePenalty',
        'choices',
        'topK',
        'verbosity',
        'metadata',
        'modalities',
      ],
      // https://inference-docs.cerebras.ai/resources/openai: 400 for members that it does not know.
      refusesUnknown: true,
      refusedMembers: [{ path: 'safety_identifier', as: 'user' }],
      members: cerebrasMembers,
      cacheMark: 'none',
    },
    'gpt-oss-*': gptOss,
    // https://inference-docs.cerebras.ai/capabilities/reasoning: `none` in place of `disable_reasoning`, which is deprecated.
    'zai-glm-*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'], thinksByDefault: true },
    'qwen-3.*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'], thinksByDefault: true },
    // Reasoning is part of the content for this model, and separate for the others: https://inference-docs.cerebras.ai/capabilities/reasoning
    'qwen-3-*': { inlineThinking: true, thinksByDefault: true, stopsThinking: false },
  },
});
