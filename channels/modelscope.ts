import { openaiLike } from './_kit/dialect/openai-like.ts';

/** ModelScope API-Inference. https://modelscope.cn/docs/model-service/API-Inference/intro */
export default openaiLike({
  name: 'modelscope',
  baseUrl: 'https://api-inference.modelscope.cn/v1',
  models: ['*/*'],
  discover: true,
  // https://modelscope.cn/docs/model-service/API-Inference/intro: `enable_thinking`, as at DashScope.
  openModels: { reasoning: 'enable-thinking', thinksInStreamsOnly: true },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // github:modelscope/modelscope#1801: an answer to a schema has no choices; `json_object` works.
      jsonSchema: false,
      // LiteLLM 1.110.2, llms/modelscope/chat/transformation.py: lists of texts go as one text.
      textParts: false,
    },
  },
});
