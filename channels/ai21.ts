import { openaiLike } from './_kit/dialect/openai-like.ts';

/** AI21 Labs: Jamba. https://docs.ai21.com/reference/jamba-1-6-api-ref */
export default openaiLike({
  name: 'ai21',

  catalogue: ['ai21'],
  baseUrl: 'https://api.ai21.com/studio/v1',
  models: ['jamba-*'],
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      refuses: ['logprobs', 'topLogprobs', 'seed', 'frequencyPenalty', 'presencePenalty', 'topK'],
    },
  },
});
