import { httpChannel, bearer, traitsByModel } from './_http.ts';

/** MiniMax. In China, `baseUrl: 'https://api.minimaxi.com/v1'`. https://platform.minimax.io/docs/api-reference/text-openai-api */
export default httpChannel({
  name: 'minimax',
  catalogue: ['minimax'],
  baseUrl: 'https://api.minimax.io/v1',
  models: ['MiniMax-*'],
  headers: bearer,
  speaks: { chat: ['chat-completions'] },
  traits: traitsByModel({
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_completion_tokens',
      inlineThinking: true,
      refuses: [
        'customTools',
        'choices',
        'frequencyPenalty',
        'presencePenalty',
        'logprobs',
        'topLogprobs',
        'topK',
      ],
      inputLimit: 204_800,
    },
  }),
});
