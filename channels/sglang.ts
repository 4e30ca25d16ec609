import { openaiLike } from './_kit/dialect/openai-like.ts';

/** SGLang. https://docs.sglang.ai/basic_usage/openai_api_completions.html */
export default openaiLike({
  name: 'sglang',
  baseUrl: 'http://localhost:30000/v1',
  needsKey: false,
  prices: { '*': { input: 0, output: 0 } },
  models: 'discover',
  speaks: { chat: ['chat-completions', 'text-completions'], embed: ['embeddings'], rerank: ['rerank'] },
  traits: {
    '*': {
      formats: ['chat-completions'],
      // SGLang, python/sglang/srt/entrypoints/openai/protocol.py, `ReasoningEffortTier`: `none` switches the template's thinking off.
      reasoning: 'effort',
      efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
    },
  },
});
