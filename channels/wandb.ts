import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Weights & Biases Inference. https://docs.wandb.ai/inference/api-reference */
export default openaiLike({
  name: 'wandb',
  catalogue: ['wandb'],
  baseUrl: 'https://api.inference.wandb.ai/v1',
  models: ['*/*'],
  discover: true,
  // https://docs.wandb.ai/inference/response-settings/reasoning
  openModels: { reasoning: 'template' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
  },
});
