import { bearer } from './_kit/http/http-channel.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Friendli serverless endpoints. https://friendli.ai/docs/openapi/serverless/chat-completions */
export default openaiLike({
  name: 'friendli',
  catalogue: ['friendliai'],
  baseUrl: 'https://api.friendli.ai/serverless/v1',
  models: 'discover',
  // https://pypi.org/project/friendli/0.16.5, core/serverless_messages.py
  messages: { instead: ['/serverless/v1', '/serverless/v1'], headers: bearer },
  // https://friendli.ai/docs/guides/reasoning
  openModels: { reasoning: 'template' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // https://pypi.org/project/friendli/0.16.5, core/models: instructions, answers and results are texts, and forms of answers go without tools.
      textParts: false,
      refusedMembers: [{ path: 'response_format', beside: 'tools' }],
    },
    '*GLM-5.2*': { reasoning: 'effort', efforts: ['high', 'max'] },
    '*GLM-5.3*': { reasoning: 'effort', efforts: ['low', 'high', 'max'] },
  },
});
