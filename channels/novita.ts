import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Novita AI. https://novita.ai/docs/guides/llm-api */
export default openaiLike({
  name: 'novita',
  catalogue: ['novita'],
  baseUrl: 'https://api.novita.ai/openai/v1',
  models: ['*/*'],
  discover: true,
  speaks: { chat: ['chat-completions', 'text-completions'], embed: ['embeddings'], rerank: ['rerank'] },
  // https://novita.ai/docs/guides/llm-batch-api
  keeps: { 'chat-completions': ['files', 'batches'] },
  // https://novita.ai/docs/guides/LLM-FAQ https://novita.ai/docs/api-reference/model-apis-llm-create-chat-completion
  openModels: { reasoning: 'enable-thinking' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { formats: ['chat-completions'], reasoning: 'none', outputLimitField: 'max_tokens' },
    'deepseek/deepseek-r1*': { inlineThinking: true },
  },
});
