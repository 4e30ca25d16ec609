import { openaiLike } from './_openai-like.ts';

/** DeepSeek. It thinks unless switched off, and wants its reasoning back with every turn that called tools. */
export default openaiLike({
  name: 'deepseek',
  catalogue: ['deepseek'],
  baseUrl: 'https://api.deepseek.com/v1',
  models: ['deepseek-*'],
  traits: {
    '*': {
      reasoning: 'thinking',
      efforts: ['none', 'low', 'high', 'max'],
      replaysReasoning: true,
      outputLimitField: 'max_tokens',
      // `json_object` is all it has: a schema goes through a forced tool.
      jsonSchema: false,
      refuses: ['choices', 'seed', 'verbosity', 'serviceTier'],
      inputLimit: 1_000_000,
      outputLimit: 384_000,
    },
  },
});
