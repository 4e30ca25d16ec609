import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

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
      // tencentcloud-sdk-python-hunyuan 3.1.180, hunyuan/v20230901/models.py, `ChatCompletionsRequest`: it has none of these, and forces no tool by
      // `required` or by a name.
      forcedTools: 'never',
      refuses: ['choices', 'logprobs', 'topLogprobs', 'frequencyPenalty', 'presencePenalty', 'topK'],
    },
    // The same, `EnableThinking`: this model alone has the switch, and thinks without it.
    'hunyuan-a13b*': { reasoning: 'enable-thinking', thinksByDefault: true },
    'hunyuan-t1*': thinksAlike,
    'hunyuan-*-thinking*': thinksAlike,
  },
});
