import { openaiLike } from './_kit/dialect/openai-like.ts';

/** StepFun. Outside China, `baseUrl: 'https://api.stepfun.ai/v1'`. https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create */
export default openaiLike({
  name: 'stepfun',
  baseUrl: 'https://api.stepfun.com/v1',
  models: ['step-*'],
  traits: {
    '*': {
      reasoning: 'none',
      reasoningField: 'reasoning',
      // StepFun sends an empty text where the official API sends null.
      finishReasons: { '': null },
      outputLimitField: 'max_tokens',
      refuses: ['logprobs', 'topLogprobs', 'seed'],
    },
    // github:anomalyco/models.dev#1903: three levels of effort from 3.7 on, two before. Reasoning cannot be disabled.
    'step-3*': {
      reasoning: 'effort',
      efforts: ['low', 'medium', 'high'],
      thinksByDefault: true,
      stopsThinking: false,
    },
    'step-3.5*': { efforts: ['low', 'high'], effortAs: { medium: 'high' } },
    'step-5*': {
      reasoning: 'effort',
      efforts: ['low', 'medium', 'high'],
      thinksByDefault: true,
      stopsThinking: false,
    },
  },
});
