import { openaiLike } from './_openai-like.ts';

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
  // https://docs.sambanova.ai/docs/en/features/reasoning
  openModels: { reasoning: 'template' },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      refuses: ['choices', 'logprobs', 'topLogprobs', 'frequencyPenalty', 'presencePenalty', 'seed'],
    },
    'DeepSeek-R1*': { inlineThinking: true },
    '*Whisper-*': { transcripts: ['json', 'text'] },
  },
});
