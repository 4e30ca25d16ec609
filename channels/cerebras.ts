import { gptOss } from './_open-models.ts';
import { openaiLike } from './_openai-like.ts';

/** Cerebras. Penalties and the bias of tokens are answered 400. https://inference-docs.cerebras.ai/resources/openai */
export default openaiLike({
  name: 'cerebras',
  catalogue: ['cerebras'],
  baseUrl: 'https://api.cerebras.ai/v1',
  models: ['llama*', 'gpt-oss-*', 'qwen-3-*', 'zai-glm-*'],
  discover: true,
  fields: { logit_bias: null },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  // https://inference-docs.cerebras.ai/capabilities/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  traits: {
    '*': {
      reasoning: 'none',
      reasoningField: 'reasoning',
      refuses: ['frequencyPenalty', 'presencePenalty', 'choices', 'topK'],
    },
    'gpt-oss-*': gptOss,
    // https://inference-docs.cerebras.ai/capabilities/reasoning: `none` in place of `disable_reasoning`, which is deprecated.
    'zai-glm-*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'], thinksByDefault: true },
    'qwen-3.*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'], thinksByDefault: true },
    // Its thinking stands before the answer; that of the others beside it: https://inference-docs.cerebras.ai/capabilities/reasoning
    'qwen-3-*': { inlineThinking: true, thinksByDefault: true, stopsThinking: false },
  },
});
