import { openaiLike } from './_kit/dialect/openai-like.ts';

/** The server of llama.cpp. https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md */
export default openaiLike({
  name: 'llama-cpp',
  baseUrl: 'http://localhost:8080/v1',
  needsKey: false,
  prices: { '*': { input: 0, output: 0 } },
  models: 'discover',
  speaks: {
    chat: ['chat-completions', 'responses', 'messages', 'text-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
  },
  // `chat_template_kwargs` reach the template, and images may be addresses: its README.
  openModels: { reasoning: 'template' },
  traits: {
    '*': {
      formats: ['chat-completions', 'messages'],
      reasoning: 'none',
      outputLimitField: 'max_tokens',
    },
  },
});
