import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Baichuan. https://platform.baichuan-ai.com/docs/api */
export default openaiLike({
  name: 'baichuan',
  baseUrl: 'https://api.baichuan-ai.com/v1',
  models: ['Baichuan*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      jsonSchema: false,
      refuses: ['choices', 'logprobs', 'topLogprobs', 'seed', 'frequencyPenalty', 'presencePenalty'],
    },
  },
});
