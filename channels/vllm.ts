import { openaiLike } from './_kit/dialect/openai-like.ts';

/** vLLM on this machine, or at `baseUrl`. https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html */
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
    '*': {
      formats: ['chat-completions'],
      // vLLM, vllm/entrypoints/openai/reasoning_effort.py; github:vllm-project/vllm#43401: an effort switches the template's thinking, too.
      reasoning: 'effort',
      efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
      // https://docs.vllm.ai/en/v0.26.0/features/reasoning_outputs/: once `reasoning_content`.
      reasoningField: 'reasoning',
    },
  },
});
