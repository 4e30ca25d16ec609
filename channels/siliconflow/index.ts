import { openaiLike } from '../_kit/dialect/openai-like.ts';
import { siliconflowBatches } from './batches.ts';

/** SiliconFlow. In China, `baseUrl: 'https://api.siliconflow.cn/v1'`. https://docs.siliconflow.com/en/api-reference/chat-completions/chat-completions */
export default openaiLike({
  name: 'siliconflow',
  baseUrl: 'https://api.siliconflow.com/v1',
  models: ['*/*'],
  discover: true,
  speaks: {
    chat: ['chat-completions'],
    embed: ['embeddings'],
    rerank: ['rerank'],
    transcribe: ['audio'],
    speak: ['audio'],
  },
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.5,
  batches: ({ download }) => siliconflowBatches(download),
  // https://docs.siliconflow.cn/cn/api-reference/chat-completions
  openModels: {
    reasoning: 'enable-thinking',
    thinkingBudget: { min: 128, max: 32_768 },
    forcedTools: 'without-thinking',
  },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      refuses: ['logprobs', 'topLogprobs', 'seed', 'presencePenalty'],
      transcripts: ['json'],
    },
  },
});
