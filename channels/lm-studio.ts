import { openaiLike } from './_kit/dialect/openai-like.ts';

/** LM Studio. https://lmstudio.ai/docs/developer/openai-compat */
export default openaiLike({
  name: 'lm-studio',
  baseUrl: 'http://localhost:1234/v1',
  needsKey: false,
  prices: { '*': { input: 0, output: 0 } },
  models: 'discover',
  speaks: { chat: ['chat-completions', 'responses', 'text-completions'], embed: ['embeddings'] },
  traits: {
    '*': {
      formats: ['chat-completions'],
      // github:lmstudio-ai/lmstudio-bug-tracker#1250: chat completions have no control of it.
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      fetchesUrls: false,
      // https://lmstudio.ai/docs/developer/openai-compat/structured-output: `json_schema` or `text`.
      jsonObject: false,
    },
  },
});
