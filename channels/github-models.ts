import type { ModelTraits } from 'sluice';
import { bearer, httpChannel, traitsByModel } from './_http.ts';
import { openaiTraits } from './_openai-models.ts';
import { thinksAlike } from './_open-models.ts';

/** What holds for every model. The service of Azure behind it answers 400 to members that it does not know: github:zed-industries/zed#52000. */
const common = {
  reasoning: 'none',
  outputLimitField: 'max_tokens',
  systemRole: 'system',
  refusedMembers: ['prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'verbosity', 'top_k'],
  refuses: ['topK', 'promptCacheKey', 'verbosity', 'customTools'],
  cacheMark: 'none',
} as const satisfies ModelTraits;

const others = traitsByModel({
  'deepseek/deepseek-r1*': { ...thinksAlike, inlineThinking: true },
  'microsoft/*reasoning*': { ...thinksAlike, inlineThinking: true },
});

/** GitHub Models: `vendor/model`, with a token that has `models: read`. https://docs.github.com/en/rest/models/inference */
export default httpChannel({
  name: 'github-models',
  catalogue: ['github'],
  baseUrl: 'https://models.github.ai/inference',
  models: ['*/*'],
  headers: bearer,
  modelList: '/models',
  speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
  traits(model) {
    const [, name] = /^openai\/(.+)$/.exec(model) ?? [];
    return name === undefined ? { ...common, ...others(model) } : ofOpenai(name);
  },
});

/** The models of OpenAI take what they take elsewhere, in chat completions. */
function ofOpenai(name: string): ModelTraits {
  const { reasoning, systemRole, efforts, refuses = [], refusedMembers = [] } = openaiTraits(name);
  const thinks = reasoning !== undefined && reasoning !== 'none';
  return {
    ...common,
    ...(thinks ? { reasoning, outputLimitField: 'max_completion_tokens' } : {}),
    ...(systemRole === undefined ? {} : { systemRole }),
    ...(efforts === undefined ? {} : { efforts }),
    refuses: [...new Set([...common.refuses, ...refuses])],
    refusedMembers: [...common.refusedMembers, ...refusedMembers],
  };
}
