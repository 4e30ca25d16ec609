import { openaiLike } from './_openai-like.ts';

/** Ollama on this machine, or anywhere that `baseUrl` says. Models that cannot think answer 400 when asked to. */
export default openaiLike({
  name: 'ollama',
  baseUrl: 'http://localhost:11434/v1',
  needsKey: false,
  discover: true,
  prices: { '*': { input: 0, output: 0 } },
  models: [
    'llama*',
    'qwen*',
    'gemma*',
    'gpt-oss*',
    'phi*',
    'mistral*',
    'deepseek-r1*',
    'granite*',
    'smollm*',
    'nomic-embed-*',
    'mxbai-embed-*',
    'bge-*',
    'all-minilm*',
  ],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      fetchesUrls: false,
      refuses: ['choices', 'user', 'parallelTools', 'serviceTier', 'metadata', 'promptCacheKey', 'verbosity'],
    },
    'qwen3*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'] },
    'deepseek-r1*': { reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'] },
    'gpt-oss*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  },
});
