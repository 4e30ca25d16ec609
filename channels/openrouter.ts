import { isObject } from 'sluice';
import { openrouterPrices } from './_kit/http/listed-prices.ts';
import { bearer } from './_kit/http/http-channel.ts';
import { claudeBehindSlash } from './_kit/dialect/messages-side.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** OpenRouter: models of many vendors, named `vendor/model`. Requests reasoning in a `reasoning` object, and returns it with its signatures. */
export default openaiLike({
  name: 'openrouter',
  catalogue: ['openrouter'],
  baseUrl: 'https://openrouter.ai/api/v1',
  models: ['*/*'],
  discover: true,
  listedPrices: openrouterPrices,
  // In dollars. With a provider key of one's own it is the fee alone, and what that provider charges stands beside it:
  // https://openrouter.ai/docs/use-cases/usage-accounting
  statedCost({ cost, is_byok: isOwnKey, cost_details: details }) {
    if (typeof cost !== 'number') return undefined;
    if (isOwnKey !== true) return cost;
    const upstream = isObject(details) ? details['upstream_inference_cost'] : undefined;
    return typeof upstream === 'number' ? cost + upstream : undefined;
  },
  // https://openrouter.ai/docs/api_reference/embeddings
  speaks: { chat: ['chat-completions', 'responses'], embed: ['embeddings'] },
  // https://openrouter.ai/docs/guides/coding-agents/claude-code-integration: Claude is what it is made for.
  messages: { instead: ['/v1', '/v1'], headers: bearer, models: ['anthropic/*'], traits: claudeBehindSlash },
  // Other models, other vendors of one, saved settings that name either, and searches that are paid for.
  routingFields: ['models', 'route', 'provider', 'preset', 'plugins', 'web_search_options'],
  // @openrouter/sdk 1.3.19, esm/models/chatmessages.d.ts
  developerRole: true,
  traits: {
    '*': {
      reasoning: 'object',
      reasoningField: 'reasoning',
      outputLimitField: 'max_tokens',
      replaysReasoning: true,
      cacheMark: 'cache_control',
      // @openrouter/sdk 1.3.19, `ChatFunctionTool.cacheControl`.
      marksTools: true,
      // Stateless: https://openrouter.ai/docs/api_reference/responses/overview
      byFormat: { responses: { reasoning: 'effort', keepsResponses: false } },
    },
  },
});
