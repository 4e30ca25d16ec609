import { gptOss } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Scaleway Generative APIs. https://www.scaleway.com/en/docs/generative-apis/ */
export default openaiLike({
  name: 'scaleway',
  catalogue: ['scaleway'],
  baseUrl: 'https://api.scaleway.ai/v1',
  models: 'discover',
  speaks: { chat: ['chat-completions'], embed: ['embeddings'], transcribe: ['audio'] },
  // https://www.scaleway.com/en/docs/generative-apis/how-to/query-reasoning-models/
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    '*gpt-oss*': gptOss,
  },
});
