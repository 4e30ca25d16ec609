import { openaiLike } from './_kit/dialect/openai-like.ts';

/** iFlytek Spark; the key is the APIPassword of the console. https://www.xfyun.cn/doc/spark/HTTP%E8%B0%83%E7%94%A8%E6%96%87%E6%A1%A3.html */
export default openaiLike({
  name: 'iflytek',
  baseUrl: 'https://spark-api-open.xf-yun.com/v1',
  models: ['4.0Ultra', 'generalv3*', 'max-32k', 'pro-128k', 'lite'],
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      jsonSchema: false,
      refuses: ['choices', 'logprobs', 'topLogprobs', 'seed'],
    },
  },
});
