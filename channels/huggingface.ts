import { huggingfacePrices } from './_kit/http/listed-prices.ts';
import { gptOss } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** The router of Hugging Face: `owner/model`, or `owner/model:provider`. https://huggingface.co/docs/inference-providers/tasks/chat-completion */
export default openaiLike({
  name: 'huggingface',
  catalogue: ['huggingface'],
  baseUrl: 'https://router.huggingface.co/v1',
  models: ['*/*'],
  discover: true,
  listedPrices: huggingfacePrices,
  speaks: { chat: ['chat-completions', 'responses'] },
  traits: {
    '*': { formats: ['chat-completions'], reasoning: 'none', outputLimitField: 'max_tokens' },
    'openai/gpt-oss-*': gptOss,
  },
});
