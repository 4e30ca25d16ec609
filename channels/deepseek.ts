import { apiKey } from './_http.ts';
import { inBoth } from './_messages-side.ts';
import { openaiLike } from './_openai-like.ts';

/** https://api-docs.deepseek.com/guides/thinking_mode: it maps them to its own low, high and max. */
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** DeepSeek. It thinks unless switched off, and wants its reasoning back with every turn that called tools. */
export default openaiLike({
  name: 'deepseek',
  catalogue: ['deepseek'],
  baseUrl: 'https://api.deepseek.com/v1',
  models: ['deepseek-*'],
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
      reasoning: 'thinking',
      efforts,
      replaysReasoning: true,
      outputLimitField: 'max_tokens',
      // https://api-docs.deepseek.com/api/create-chat-completion: it asks for a later try where its own service is short of room.
      finishReasons: { insufficient_system_resource: 'length' },
      // `json_object` is all it has: a schema goes through a forced tool.
      jsonSchema: false,
      refuses: ['choices', 'seed', 'verbosity', 'serviceTier'],
    },
    // https://api-docs.deepseek.com/guides/thinking_mode: it thinks unless switched off, and takes no forced tool meanwhile.
    'deepseek-v*': { thinksByDefault: true, forcedTools: 'without-thinking' },
    'deepseek-reasoner*': { thinksByDefault: true, forcedTools: 'without-thinking' },
  },
});
