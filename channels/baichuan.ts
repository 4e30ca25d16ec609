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
      // https://docs.cloudsway.net/zh/maasapi/api-reference/text/MaaS_baichuan/
      ranges: { temperature: { min: 0, max: 1 }, topK: { min: 0, max: 20 } },
      // https://github.com/CherryHQ/cherry-studio, NOT_SUPPORT_ARRAY_CONTENT_PROVIDERS
      textParts: false,
      // The only penalty is the frequency penalty, from 1 to 2: https://github.com/lobehub/lobehub, agent-runtime/baichuan.
      refuses: ['choices', 'logprobs', 'topLogprobs', 'seed', 'frequencyPenalty', 'presencePenalty'],
    },
  },
});
