import { openaiLike } from './_kit/dialect/openai-like.ts';

/** ModelScope API-Inference. https://modelscope.cn/docs/model-service/API-Inference/intro */
export default openaiLike({
  name: 'modelscope',
  baseUrl: 'https://api-inference.modelscope.cn/v1',
  models: ['*/*'],
  discover: true,
  // https://modelscope.cn/docs/model-service/API-Inference/intro: `enable_thinking`, as at DashScope.
  openModels: { reasoning: 'enable-thinking', thinksInStreamsOnly: true },
  traits: { '*': { reasoning: 'none', outputLimitField: 'max_tokens' } },
});
