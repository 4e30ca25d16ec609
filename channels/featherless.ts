import { openaiLike } from './_kit/dialect/openai-like.ts';

/** Featherless. https://featherless.ai/docs/api-overview-and-common-options */
export default openaiLike({
  name: 'featherless',
  catalogue: ['featherless_ai'],
  baseUrl: 'https://api.featherless.ai/v1',
  models: ['*/*'],
  // https://featherless.ai/docs/chat-template-kwargs
  openModels: { reasoning: 'template' },
  traits: { '*': { reasoning: 'none', outputLimitField: 'max_tokens' } },
});
