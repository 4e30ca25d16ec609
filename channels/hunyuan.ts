import { openaiLike } from './_openai-like.ts';

/** Tencent Hunyuan. https://cloud.tencent.com/document/product/1729/111007 */
export default openaiLike({
  name: 'hunyuan',
  baseUrl: 'https://api.hunyuan.cloud.tencent.com/v1',
  models: ['hunyuan-*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      jsonSchema: false,
      refuses: ['choices', 'logprobs', 'topLogprobs', 'frequencyPenalty', 'presencePenalty'],
    },
  },
});
