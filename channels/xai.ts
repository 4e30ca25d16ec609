import { openaiLike } from './_openai-like.ts';
import { xaiBatches } from './_xai-batches.ts';

/**
 * xAI. Models that reason answer 400 to penalties and stop sequences. https://docs.x.ai/docs/api-reference
 * It searches in Responses alone; what asked for that in chat completions (`search_parameters`) is answered 410:
 * https://docs.x.ai/docs/guides/tools/overview
 */
export default openaiLike({
  name: 'xai',
  catalogue: ['xai'],
  baseUrl: 'https://api.x.ai/v1',
  models: ['grok-*'],
  speaks: { chat: ['chat-completions', 'responses'], 'generate-image': ['images'] },
  routingFields: ['search_parameters'],
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  // 1 dollar is 10,000,000,000 ticks. Tools that it runs are included: https://docs.x.ai/developers/cost-tracking
  statedCost: ({ cost_in_usd_ticks: ticks }) => (typeof ticks === 'number' ? ticks / 1e10 : undefined),
  batches: xaiBatches,
  traits: {
    '*': { serverTools: 'responses', reasoning: 'none', inputLimit: 131_072, refuses: ['topK'] },
    'grok-4*': { inputLimit: 256_000, refuses: ['topK', 'presencePenalty', 'frequencyPenalty', 'stop'] },
    'grok-3-mini*': {
      reasoning: 'effort',
      efforts: ['low', 'high'],
      refuses: ['topK', 'presencePenalty', 'frequencyPenalty', 'stop'],
    },
    // https://docs.x.ai/developers/pricing
    'grok-4-1-fast*': { inputLimit: 2_000_000 },
    'grok-4.20*': { inputLimit: 2_000_000 },
    // https://docs.x.ai/developers/model-capabilities/text/reasoning
    'grok-4.3*': {
      reasoning: 'effort',
      efforts: ['none', 'low', 'medium', 'high'],
      inputLimit: 1_000_000,
    },
    'grok-*non-reasoning*': { refuses: ['topK'] },
    'grok-*image*': { images: { streams: false, most: 10, qualities: [], styles: [] } },
  },
});
