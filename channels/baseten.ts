import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Models whose chat template switches reasoning, which is off by default. */
const optIn = {
  reasoning: 'template',
  templateMember: 'chat_template_args',
  thinksByDefault: false,
  stopsThinking: true,
} as const;

/** Baseten model APIs. https://docs.baseten.co/reference/inference-api/chat-completions */
export default openaiLike({
  name: 'baseten',
  catalogue: ['baseten'],
  baseUrl: 'https://inference.baseten.co/v1',
  models: ['*/*'],
  discover: true,
  // https://docs.baseten.co/inference/model-apis/reasoning
  openModels: { reasoning: 'template', templateMember: 'chat_template_args' },
  thinking: { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens' },
    // Opt in.
    '*Kimi-K2.*': optIn,
    '*DeepSeek-V4*': {
      reasoning: 'effort',
      efforts: ['low', 'medium', 'high', 'xhigh'],
      thinksByDefault: true,
    },
    '*GLM-*': optIn,
    '*Nemotron-*': optIn,
  },
});
