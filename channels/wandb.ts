import type { ModelTraits } from 'sluice';
import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Models whose chat template switches reasoning, which is on by default. */
const switched: ModelTraits = { reasoning: 'template', thinksByDefault: true };

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
    '*': { reasoning: 'none', reasoningField: 'reasoning', outputLimitField: 'max_tokens' },
    // https://docs.wandb.ai/inference/response-settings/reasoning: the table of models.
    'google/gemma-4*': switched,
    'nvidia/*Nemotron-3*': switched,
    'deepseek-ai/DeepSeek-V4*': { ...switched, thinksByDefault: false },
    'moonshotai/Kimi-K2*': thinksAlike,
    'MiniMaxAI/*': thinksAlike,
  },
});
