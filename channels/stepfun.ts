import { openaiLike } from './_kit/dialect/openai-like.ts';

/** StepFun. Outside China, `baseUrl: 'https://api.stepfun.ai/v1'`. https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create */
export default openaiLike({
  name: 'stepfun',
  baseUrl: 'https://api.stepfun.com/v1',
  models: ['step-*'],
  traits: {
    '*': { reasoning: 'none', outputLimitField: 'max_tokens', refuses: ['logprobs', 'topLogprobs', 'seed'] },
    'step-3*': { reasoning: 'effort', efforts: ['low', 'medium', 'high'] },
  },
});
