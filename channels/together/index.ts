import type { ModelTraits } from 'sluice';
import { openaiLike } from '../_kit/dialect/openai-like.ts';
import { togetherBatches } from './batches.ts';

/**
 * Responses, which Together supports for some models and which keeps none; what others answer there may be malformed.
 * https://docs.together.ai/docs/inference/responses-api
 */
const responses: ModelTraits = {
  formats: ['chat-completions', 'responses'],
  // https://docs.together.ai/docs/inference/responses
  mcp: ['responses'],
  byFormat: { responses: { reasoning: 'effort', keepsResponses: false, refuses: ['customTools'] } },
};

/** Together AI. `max_tokens` carries the output limit. https://docs.together.ai/docs/openai-api-compatibility */
export default openaiLike({
  name: 'together',
  catalogue: ['together_ai'],
  baseUrl: 'https://api.together.xyz/v1',
  models: ['*/*'],
  discover: true,
  speaks: {
    chat: ['chat-completions', 'responses'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    'generate-image': ['images'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
    speak: ['audio'],
  },
  // https://docs.together.ai/docs/batch-inference
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  batches: togetherBatches,
  // https://docs.together.ai/docs/inference/chat/reasoning: hybrid models have a switch and no measure.
  openModels: { reasoning: 'object', efforts: [] },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': {
      formats: ['chat-completions'],
      reasoning: 'none',
      reasoningField: 'reasoning',
      outputLimitField: 'max_tokens',
      finishReasons: { eos: 'stop' },
    },
    'deepseek-ai/DeepSeek-R1*': { inlineThinking: true },
    'zai-org/GLM-5.3': responses,
  },
});
