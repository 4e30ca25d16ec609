import { openaiLike } from './_openai-like.ts';

/** Cerebras. Penalties and the bias of tokens are answered 400. https://inference-docs.cerebras.ai/resources/openai */
export default openaiLike({
  name: 'cerebras',
  catalogue: ['cerebras'],
  baseUrl: 'https://api.cerebras.ai/v1',
  models: ['llama*', 'gpt-oss-*', 'qwen-3-*', 'zai-glm-*'],
  discover: true,
  fields: { logit_bias: null },
  // https://inference-docs.cerebras.ai/capabilities/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  traits: {
    '*': { reasoning: 'none', refuses: ['frequencyPenalty', 'presencePenalty', 'choices', 'topK'] },
    'gpt-oss-*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
    // Its thinking stands before the answer; that of the others beside it: https://inference-docs.cerebras.ai/capabilities/reasoning
    'qwen-3-*': { inlineThinking: true },
  },
});
