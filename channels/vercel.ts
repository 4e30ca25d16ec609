import { bearer } from './_kit/http/http-channel.ts';
import { claudeBehindSlash } from './_kit/dialect/messages-side.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Vercel AI Gateway: `vendor/model`. https://vercel.com/docs/ai-gateway/openai-compat */
export default openaiLike({
  name: 'vercel',
  catalogue: ['vercel_ai_gateway'],
  baseUrl: 'https://ai-gateway.vercel.sh/v1',
  models: ['*/*'],
  discover: true,
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  // https://vercel.com/docs/ai-gateway/sdks-and-apis/anthropic-messages-api
  messages: { instead: ['/v1', '/v1'], headers: bearer, models: ['anthropic/*'], traits: claudeBehindSlash },
  routingFields: ['models', 'providerOptions'],
  // Vercel also serves models of OpenAI, whose parameters clients use.
  developerRole: true,
  traits: {
    '*': {
      reasoning: 'object',
      reasoningField: 'reasoning',
      outputLimitField: 'max_tokens',
      cacheMark: 'cache_control',
    },
  },
});
