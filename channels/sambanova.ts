import { openaiLike } from './_kit/dialect/openai-like.ts';

/** SambaNova Cloud. https://docs.sambanova.ai/docs/en/api-reference/endpoints/chat */
export default openaiLike({
  name: 'sambanova',
  catalogue: ['sambanova'],
  baseUrl: 'https://api.sambanova.ai/v1',
  models: ['Meta-Llama-*', 'Llama-*', 'DeepSeek-*', 'Qwen*', 'gpt-oss-*', 'MiniMax-*', 'E5-*', 'Whisper-*'],
  discover: true,
  speaks: {
    chat: ['chat-completions'],
    embed: ['embeddings'],
    transcribe: ['audio'],
    'translate-audio': ['audio'],
  },
  // sambanova 1.4.0, resources/chat/completions.d.ts, `ChatTemplateKwargs` and `reasoning_effort`
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  openModels: { reasoning: 'template' },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      // sambanova 1.4.0, resources/chat/completions.d.ts: "not yet supported by our models".
      refuses: ['choices', 'seed', 'parallelTools'],
      refusedMembers: ['logit_bias'],
    },
    'DeepSeek-R1*': { inlineThinking: true },
    '*Whisper-*': { transcripts: ['json', 'text'] },
  },
});
