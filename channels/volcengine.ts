import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Volcengine Ark: Doubao and others. Thinking is switched on and off. https://www.volcengine.com/docs/82379/1494384 */
export default openaiLike({
  name: 'volcengine',
  catalogue: ['volcengine'],
  baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
  models: ['doubao-*', 'deepseek-*', 'kimi-*', 'glm-*', 'ep-*'],
  speaks: { chat: ['chat-completions', 'responses'], embed: ['embeddings'] },
  traits: {
    '*': {
      formats: ['chat-completions'],
      reasoning: 'thinking',
      efforts: ['none', 'minimal', 'low', 'medium', 'high'],
      refuses: ['choices', 'seed', 'verbosity', 'topK'],
    },
    // https://www.volcengine.com/docs/82379/1449737
    'doubao-seed-*': { thinksByDefault: true },
    'deepseek-r1*': thinksAlike,
    '*-thinking-*': thinksAlike,
  },
});
