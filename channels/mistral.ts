import { mistralBatches } from './_mistral-batches.ts';
import { openaiLike } from './_openai-like.ts';

/** Mistral. It answers 422 to fields it does not know, tells usage in every stream unasked, and has a word of its own for the seed. */
export default openaiLike({
  name: 'mistral',
  catalogue: ['mistral'],
  baseUrl: 'https://api.mistral.ai/v1',
  models: ['mistral-*', 'ministral-*', 'magistral-*', 'codestral-*', 'devstral-*', 'pixtral-*', 'open-mi*'],
  speaks: { chat: ['chat-completions'], embed: ['embeddings'], moderate: ['moderations'] },
  keeps: { 'chat-completions': ['files', 'batches'] },
  batches: mistralBatches,
  fields: { seed: 'random_seed', max_completion_tokens: 'max_tokens', stream_options: null, user: null },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      prefill: true,
      refuses: [
        'topK',
        'logprobs',
        'topLogprobs',
        'user',
        'metadata',
        'serviceTier',
        'verbosity',
        'promptCacheKey',
        'modalities',
      ],
      inputLimit: 131_072,
    },
  },
});
