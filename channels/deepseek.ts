import type { ModelTraits } from 'sluice';
import { apiKey } from './_kit/http/http-channel.ts';
import { inBoth } from './_kit/dialect/messages-side.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

/** https://api-docs.deepseek.com/guides/thinking_mode: it maps them to its own low, high and max. */
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/**
 * V4 in Responses: stateless, with all efforts, reasoning in plain text, and `apply_patch` as the only free-text tool.
 * https://api-docs.deepseek.com/guides/responses_api; https://api-docs.deepseek.com/api/create-response
 */
const inResponses: ModelTraits = {
  keepsResponses: false,
  reasoning: 'effort',
  efforts,
  replaysReasoning: true,
  thinksByDefault: true,
  forcedTools: 'without-thinking',
  jsonSchema: false,
  refuses: ['choices', 'seed', 'verbosity', 'serviceTier', 'customTools'],
};
const v4: ModelTraits = {
  thinksByDefault: true,
  forcedTools: 'without-thinking',
  formats: ['chat-completions', 'responses'],
  byFormat: { responses: inResponses },
};

/** DeepSeek. It thinks unless switched off, and wants its reasoning back with every turn that called tools. */
export default openaiLike({
  name: 'deepseek',
  catalogue: ['deepseek'],
  baseUrl: 'https://api.deepseek.com/v1',
  models: ['deepseek-*'],
  speaks: { chat: ['chat-completions', 'responses'] },
  // https://api-docs.deepseek.com/guides/anthropic_api
  messages: {
    instead: ['/v1', '/anthropic/v1'],
    headers: apiKey,
    traits: (chat) => ({
      ...inBoth(chat),
      // https://api-docs.deepseek.com/guides/thinking_mode; github:deepseek-ai/DeepSeek-V3#1397: no effort where thinking is off.
      reasoning: 'thinking',
      efforts,
      // github:decolua/9router#2397: turns with calls must hold what the model thought.
      replaysReasoning: true,
      // LiteLLM 1.110.2, llms/deepseek/messages/transformation.py: it answers 400 to `type: "custom"`.
      toolTypes: false,
    }),
  },
  traits: {
    '*': {
      formats: ['chat-completions'],
      reasoning: 'thinking',
      efforts,
      replaysReasoning: true,
      outputLimitField: 'max_tokens',
      // https://api-docs.deepseek.com/api/create-chat-completion: this finish reason means that the service is overloaded.
      finishReasons: { insufficient_system_resource: 'length' },
      // `json_object` is all it has: a schema goes through a forced tool.
      jsonSchema: false,
      refuses: ['choices', 'seed', 'verbosity', 'serviceTier'],
    },
    // https://api-docs.deepseek.com/guides/thinking_mode: it thinks unless switched off, and takes no forced tool meanwhile.
    'deepseek-v*': { thinksByDefault: true, forcedTools: 'without-thinking' },
    'deepseek-v4*': v4,
    'deepseek-reasoner*': { thinksByDefault: true, forcedTools: 'without-thinking' },
  },
});
