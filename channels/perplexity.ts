import { isObject } from 'sluice/internal';
import { openaiLike } from './_openai-like.ts';
import { chat, chatFormat } from './_perplexity-chat.ts';

/** Perplexity: answers from a search of the web, with its sources. https://docs.perplexity.ai/api-reference/chat-completions-post */
export default openaiLike({
  name: 'perplexity',
  catalogue: ['perplexity'],
  baseUrl: 'https://api.perplexity.ai',
  models: ['sonar*', 'r1-*'],
  speaks: { chat: [chatFormat, 'chat-completions'] },
  codecs: { chat },
  // In dollars, with the fee for the request: https://docs.perplexity.ai/api-reference/chat-completions-post
  statedCost({ cost }) {
    const total = isObject(cost) ? cost['total_cost'] : undefined;
    return typeof total === 'number' ? total : undefined;
  },
  thinking: { reasoning: 'effort', efforts: ['minimal', 'low', 'medium', 'high'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // github:perplexityai/api-discussion#265, github:serac-labs/serac#53
      alternates: true,
      midSystem: false,
      parallelHistory: false,
      refuses: ['parallelTools', 'choices', 'seed', 'stop', 'logprobs', 'topLogprobs', 'user'],
    },
    'sonar-deep-research*': { reasoning: 'effort', efforts: ['minimal', 'low', 'medium', 'high'] },
    'sonar-reasoning*': { inlineThinking: true, thinksByDefault: true, stopsThinking: false },
    'r1-*': { inlineThinking: true, thinksByDefault: true, stopsThinking: false },
  },
});
