/** Moonshot AI: Kimi, in chat completions and messages. */
import { bearer } from './_kit/http/http-channel.ts';
import { inBoth } from './_kit/dialect/messages-side.ts';
import { thinksAlike } from './_kit/dialect/open-models.ts';
import { openaiLike } from './_kit/dialect/openai-like.ts';

const thinks = {
  thinksByDefault: true,
  forcedTools: 'without-thinking',
  replaysReasoning: true,
  refuses: [
    'topK',
    'logprobs',
    'topLogprobs',
    'seed',
    'temperature',
    'topP',
    'frequencyPenalty',
    'presencePenalty',
    'choices',
  ],
} as const;
const hybrid = { ...thinks, reasoning: 'thinking', efforts: ['none'] } as const;

/** Moonshot AI: Kimi. In China, `baseUrl: 'https://api.moonshot.cn/v1'`. Thinking models want their reasoning back. https://platform.moonshot.ai/docs/api/chat */
export default openaiLike({
  name: 'moonshot',
  catalogue: ['moonshot'],
  baseUrl: 'https://api.moonshot.ai/v1',
  models: ['kimi-*', 'moonshot-*'],
  // https://platform.kimi.ai/docs/api/overview; `ANTHROPIC_API_BASE_URL` of rig-core 0.36, providers::moonshot
  messages: {
    instead: ['/v1', '/anthropic/v1'],
    headers: bearer,
    models: ['kimi-k*'],
    traits: (chat, model) => ({
      ...inBoth(chat),
      // github:farion1231/cc-switch#3377: turns with calls must hold what the model thought.
      ...(chat.replaysReasoning === true ? { replaysReasoning: true } : {}),
      // github:MoonshotAI/Kimi-K2#141: `enabled` is all that K2.7 takes.
      ...(model.startsWith('kimi-k2') ? { reasoning: 'budget' } : {}),
    }),
  },
  // https://platform.kimi.ai/docs/api/batch-create https://platform.kimi.ai/docs/pricing/batch
  keeps: { 'chat-completions': ['files', 'batches'] },
  batchShare: 0.6,
  thinking: { ...thinks, reasoning: 'effort', efforts: ['low', 'high', 'max'] },
  traits: {
    '*': {
      reasoning: 'none',
      outputLimitField: 'max_tokens',
      refuses: ['topK', 'logprobs', 'topLogprobs', 'seed'],
      ranges: { temperature: { min: 0, max: 1 } },
    },
    // https://platform.moonshot.ai/docs/guide/migrating-from-openai-to-kimi#about-tool_choice: no `required`.
    'moonshot-v1*': { requiredTools: false },
    // https://platform.kimi.ai/docs/api/chat and @ai-sdk/moonshotai@2.0.61: settings are fixed, tools cannot be forced while it thinks.
    ...Object.fromEntries(['kimi-k2.5*', 'kimi-k2.6*'].map((model) => [model, hybrid])),
    'kimi-k2.7*': { ...thinks, ...thinksAlike },
    'kimi-k2-thinking*': { ...thinksAlike, replaysReasoning: true },
    'kimi-thinking-*': { ...thinksAlike, forcedTools: 'never' },
    // github:UKGovernmentBEIS/inspect_ai#5152: it takes `required` while it thinks, and no named tool.
    'kimi-k3*': {
      ...thinks,
      reasoning: 'effort',
      efforts: ['low', 'high', 'max'],
      // Moonshot's documentation of Kimi Code, as https://dev.to/aihubmix/kimi-k31-pro-migration-guide-five-400s-one-404-and-the-claude-code-codex-config-13k
      // quotes it; https://docs.agno.com/examples/models/moonshot/reasoning-effort: `high` is the middle.
      effortAs: { medium: 'high', xhigh: 'max' },
      stopsThinking: false,
      forcedTools: 'always',
      namedTools: false,
    },
  },
});
