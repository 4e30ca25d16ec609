import { isObject } from 'sluice';
import { openaiLike } from '../_kit/dialect/openai-like.ts';
import { chat } from './agent.ts';
import { embed } from './embeddings.ts';
import { bytesInAgentWords } from './words.ts';

/** Perplexity's own model, with the search that each call makes. https://docs.perplexity.ai/docs/agent-api/models */
const sonar = { input: 0.25, cacheRead: 0.0625, output: 2.5, perCall: 0.0025 };

/** Models that do not think here: LiteLLM 1.110.2, model_prices_and_context_window_backup.json, `supports_reasoning`. */
const unthinking = [
  'anthropic/claude-haiku-4-5',
  'anthropic/claude-opus-4-5',
  'anthropic/claude-opus-4-6',
  'anthropic/claude-opus-4-7',
  'anthropic/claude-sonnet-4-5',
  'google/gemini-2.5-*',
  'google/gemini-3-*-preview',
  'openai/gpt-5-mini',
  'openai/gpt-5.1',
  'perplexity/kimi-k2.7-code',
  'perplexity/sonar',
  'sonar*',
  'xai/*-non-reasoning',
];

/**
 * Perplexity's Agent API: models of Perplexity and of others, which search the web, read pages and run code by themselves. The names of Sonar's chat
 * completions, which ended on 2026-09-27, stand for presets of it. https://docs.perplexity.ai/docs/agent-api/migrate-from-sonar/overview
 */
export default openaiLike({
  name: 'perplexity',
  catalogue: ['perplexity'],
  baseUrl: 'https://api.perplexity.ai/v1',
  models: ['sonar*', 'preset/*', 'pplx-embed-v1-*'],
  prices: { 'sonar*': sonar },
  speaks: { chat: ['responses'], embed: [embed.format] },
  codecs: { chat, embed },
  // A preset is a model and its tools, a profile more: https://docs.perplexity.ai/docs/agent-api/presets
  routingFields: ['models', 'preset', 'effort', 'profile', 'skills'],
  // In dollars, with the fees for its tools: https://docs.perplexity.ai/api-reference/agent-post
  statedCost({ cost }) {
    const total = isObject(cost) ? cost['total_cost'] : undefined;
    return typeof total === 'number' ? total : undefined;
  },
  beside: (parts) => ({
    ...parts,
    open: (call, request) => parts.open(call, { ...request, body: bytesInAgentWords(request.body) }),
  }),
  thinking: { reasoning: 'effort', efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] },
  traits: {
    '*': {
      reasoning: 'effort',
      efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'],
      // https://docs.perplexity.ai/docs/agent-api/tools/mcp
      mcp: ['responses'],
      // @ai-sdk/perplexity 2.1.1, getArgs: a schema alone makes JSON.
      jsonObject: false,
      refuses: [
        'choices',
        'seed',
        'stop',
        'topK',
        'frequencyPenalty',
        'presencePenalty',
        'logprobs',
        'topLogprobs',
        'verbosity',
        'parallelTools',
        'user',
      ],
      // perplexityai 0.46.1, generated/api.py, `ResponsesRequestInput` and `ReasoningConfigInput` have none of these.
      refusedMembers: [
        'include',
        'metadata',
        'parallel_tool_calls',
        'prompt',
        'prompt_cache_retention',
        'reasoning.summary',
        'safety_identifier',
        'stream_options',
        'text.verbosity',
        'top_logprobs',
        'truncation',
        'user',
      ],
    },
    'perplexity/kimi-k3': { efforts: ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] },
    ...Object.fromEntries(unthinking.map((model) => [model, { reasoning: 'none' as const }])),
  },
});
