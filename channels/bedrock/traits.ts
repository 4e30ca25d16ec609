/** Traits of models in Bedrock's Converse and InvokeModel APIs, by model id. */
import type { ModelTraits } from 'sluice';
import { claudeIn } from './claude.ts';
import { grok } from './openai.ts';
import { claudeTraits, schemaSubset } from '../anthropic.ts';

/**
 * Geographies with which the ids of inference profiles begin: AWS's list (aws-cdk, `CrossRegionInferenceProfileRegion`), those of LiteLLM
 * 1.110.2's price list (`in`), and of langchain-aws 1.9.1 (`MODEL_ID_GEO_PREFIXES`, `_profiles.py`: `amer`, `ca`, `sa`).
 */
export const geographies = [
  'us',
  'us-gov',
  'eu',
  'apac',
  'jp',
  'au',
  'in',
  'ca',
  'sa',
  'amer',
  'global',
] as const;

const geography = new RegExp(`^(?:${geographies.join('|')})\\.`);

/** Returns the maker's model that an inference profile stands for. */
export function ofMaker(model: string): string {
  return model.replace(geography, '');
}

/** Traits of a model, by its name. Of makers that are not listed no more is known than Converse promises. */
export function bedrockTraits(model: string): ModelTraits {
  if (/(?:^|[./])amazon\.(?:titan-embed|nova-[\w-]*embed)/.test(model)) return { mostInputs: 1 };
  const claude = claudeIn(model);
  if (claude !== undefined)
    return {
      ...claudeTraits(claude),
      formats: ['messages', 'converse', 'invoke'],
      fetchesUrls: false,
      toolNameLimit: 64,
    };
  const name = ofMaker(model.slice(model.lastIndexOf('/') + 1));
  const { refuses = [], ...own } = families.find(([pattern]) => pattern.test(name))?.[1] ?? {};
  return {
    formats: ['converse'],
    reasoning: 'none',
    jsonSchema: false,
    schemaSubset,
    midSystem: false,
    fetchesUrls: false,
    toolNameLimit: 64,
    ...own,
    refuses: ['topK', ...(name.startsWith('amazon.nova') ? [] : ['cache']), ...refuses],
  };
}

/**
 * Models that take `outputConfig.textFormat`: https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html, as models.dev (pull request
 * 1326) and langchain-aws 1.9.1 (`_profiles.py`) have it.
 */
const schemas: ModelTraits = { jsonSchema: true };

/** Returns the traits of models with the parameter `reasoning_effort`: langchain-aws 1.9.1, utils.py, `reasoning_effort_additional_fields`. */
const effort = (efforts: readonly string[]): ModelTraits => ({ reasoning: 'effort', efforts });

/** Models that take no choice but `auto`: langchain-aws 1.9.1, `supports_tool_choice_values`; LiteLLM 1.110.2, `supports_tool_choice`. */
const unforced: ModelTraits = { forcedTools: 'never' };

/** Models that take `auto` and `any`, and no tool by its name: langchain-aws 1.9.1, `supports_tool_choice_values`. */
const unnamed: ModelTraits = { namedTools: false };

/**
 * GPT from 5.6 on: LiteLLM 1.110.2, `bedrock_rejects_stop_sequences`, `BEDROCK_OPENAI_COMPAT_MIN_MAX_TOKENS`. In Converse `reasoning_effort` is an
 * unknown parameter: github:stdapi-ai/stdapi.ai#283; @ai-sdk/amazon-bedrock 4.0.186.
 */
const gpt: ModelTraits = {
  ...schemas,
  refuses: ['stop'],
  ranges: { maxOutput: { min: 16 } },
  reasoning: 'object',
  thinksByDefault: true,
};

/** From Kimi K3 on: LiteLLM 1.110.2, `_requires_min_max_tokens`; langchain-aws 1.9.1, `_profiles.py`, `temperature`. */
const kimi3: ModelTraits = {
  thinksByDefault: true,
  refuses: ['temperature'],
  ranges: { maxOutput: { min: 16 } },
};

/** Traits of model families, by the maker's name; the first matching pattern counts. */
const families: readonly (readonly [pattern: RegExp, traits: ModelTraits])[] = [
  // https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html
  [/^amazon\.nova-2/, { reasoning: 'level', efforts: ['none', 'low', 'medium', 'high'] }],
  [/^(?:meta|cohere|ai21)\./, unforced],
  [/^amazon\.titan/, unforced],
  // https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html
  [/^deepseek\.r1/, { ...unforced, tools: false, thinksByDefault: true, stopsThinking: false }],
  // Lower efforts do not make it think: langchain-aws 1.9.1, utils.py, `thinking_enabled_in_params`.
  [/^deepseek\./, { ...schemas, ...unnamed, ...effort(['none', 'high']), forcedTools: 'without-thinking' }],
  [
    /^openai\.gpt-oss/,
    { ...schemas, ...effort(['low', 'medium', 'high']), thinksByDefault: true, stopsThinking: false },
  ],
  [/^openai\.gpt-5\.[45]/, { ...gpt, formats: ['responses'] }],
  // Chat completions take no functions while it thinks: LiteLLM 1.110.2, `bedrock_request_needs_converse`.
  [/^openai\./, { ...gpt, formats: ['responses', 'converse'] }],
  // Converse has no effort for it: LiteLLM 1.110.2, llms/bedrock/chat/chat_completions.
  [/^xai\./, { ...schemas, ...grok, ranges: { maxOutput: { min: 16 } }, formats: ['chat-completions'] }],
  [/^moonshot\.kimi-k2-thinking/, { ...schemas, ...effort(['low', 'high', 'max']), thinksByDefault: true }],
  [/^moonshotai\.kimi-k2/, { ...schemas, ...effort(['low', 'high', 'max']) }],
  [
    /^moonshotai\.kimi-k3(?!\.)/,
    { ...schemas, ...effort(['low', 'high', 'max']), effortAs: { medium: 'high', xhigh: 'max' }, ...kimi3 },
  ],
  [/^moonshotai\./, { ...schemas, reasoning: 'effort', ...kimi3 }],
  [/^zai\.glm-5\.3/, { ...schemas, ...effort(['low', 'medium', 'high', 'xhigh', 'max']) }],
  [/^zai\./, { ...schemas, ...unnamed }],
  [/^mistral\.mistral-large-3/, { ...schemas, ...unnamed }],
  [/^mistral\.mistral-large/, unnamed],
  [/^mistral\.(?:ministral-3|magistral|voxtral|devstral)/, schemas],
  [/^google\.gemma-3-(?:12|27)b/, schemas],
  [/^(?:qwen\.qwen3|nvidia|minimax)/, schemas],
];
