import { openaiLike } from './_openai-like.ts';

/** vLLM on this machine, or anywhere that `baseUrl` says. https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html */
export default openaiLike({
  name: 'vllm',
  baseUrl: 'http://localhost:8000/v1',
  needsKey: false,
  prices: { '*': { input: 0, output: 0 } },
  models: 'discover',
  speaks: {
    chat: ['chat-completions', 'responses', 'text-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
  },
  traits: {
    '*': { formats: ['chat-completions'], reasoning: 'effort', efforts: ['none', 'low', 'medium', 'high'] },
  },
});
