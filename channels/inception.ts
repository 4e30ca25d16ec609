/** Inception: the diffusion language model Mercury. */
import { openaiLike } from './_kit/dialect/openai-like.ts';

const mercury = { reasoning: 'effort', efforts: ['low', 'medium', 'high'], thinksByDefault: true } as const;

/** Inception: Mercury. https://docs.inceptionlabs.ai/get-started/get-started */
export default openaiLike({
  name: 'inception',
  catalogue: ['inception'],
  baseUrl: 'https://api.inceptionlabs.ai/v1',
  models: ['mercury*'],
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    // https://docs.litellm.ai/docs/providers/inception: also `instant`, which is no effort of other providers.
    'mercury-2*': mercury,
    'mercury-3*': mercury,
  },
});
