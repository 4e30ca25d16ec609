import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Text Generation Inference. It serves one model, whatever the request calls it. https://huggingface.co/docs/text-generation-inference/messages_api */
export default openaiLike({
  name: 'tgi',
  baseUrl: 'http://localhost:3000/v1',
  needsKey: false,
  prices: { '*': { input: 0, output: 0 } },
  models: 'discover',
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // docs/openapi.json of text-generation-inference, `ChatRequest`: `n` is unused, and the others are not there.
      refuses: [
        'choices',
        'parallelTools',
        'metadata',
        'serviceTier',
        'user',
        'promptCacheKey',
        'verbosity',
        'modalities',
        'topK',
      ],
    },
  },
});
