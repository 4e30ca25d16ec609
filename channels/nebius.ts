import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Nebius Token Factory, once AI Studio. https://docs.tokenfactory.nebius.com/api-reference/introduction */
export default openaiLike({
  name: 'nebius',
  catalogue: ['nebius'],
  baseUrl: 'https://api.tokenfactory.nebius.com/v1',
  models: ['*/*'],
  discover: true,
  speaks: { chat: ['chat-completions'], embed: ['embeddings'], 'generate-image': ['images'] },
  // https://docs.tokenfactory.nebius.com/ai-models-inference/batch-inference
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  openModels: { reasoning: 'template' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    'black-forest-labs/*': { images: { streams: false, qualities: [], styles: [] } },
  },
});
