/**
 * How a model can be told how hard to think:
 * - `effort`: a level, or a budget that stands for one.
 * - `switch`: on and off alone.
 * - `never`: it does not think. `always`: it does, and cannot be told how hard.
 */
export type Control = 'effort' | 'switch' | 'never' | 'always';

/** A model of a channel kind that is tried. */
export interface Row {
  readonly kind: string;
  readonly model: string;
  readonly control: Control;
  /** True when it thinks unless it is told not to. */
  readonly byDefault?: true;
  /** True when it can be told not to think. */
  readonly stops?: true;
  /** Names of kinds of the fixtures that the channel is made as, where it needs more than a key and an address. */
  readonly made?: string;
}

type Told = readonly [
  kind: string,
  model: string,
  control: Control,
  more?: '' | 'on' | 'off' | 'on off',
  made?: string,
];

/** `on`: it thinks by default. `off`: thinking can be switched off. */
const told: readonly Told[] = [
  ['openai', 'gpt-4.1', 'never'],
  ['openai', 'gpt-4o', 'never'],
  ['openai', 'gpt-5-mini', 'effort', 'on'],
  ['openai', 'gpt-5.1', 'effort', 'off'],
  ['openai', 'gpt-5.6-sol', 'effort', 'on off'],
  ['openai', 'gpt-6-sol', 'effort', 'on off'],
  ['openai', 'o3', 'effort', 'on'],
  ['azure-openai', 'gpt-4.1', 'never'],
  ['azure-openai', 'gpt-5-mini', 'effort', 'on'],
  ['azure-foundry', 'gpt-4.1', 'never'],
  ['azure-foundry', 'claude-sonnet-4-5', 'effort', 'off'],
  ['azure-foundry', 'Kimi-K2.5', 'never'],
  ['github-models', 'openai/gpt-4.1', 'never'],
  ['github-models', 'openai/gpt-5-mini', 'effort', 'on'],
  ['anthropic', 'claude-haiku-4-5', 'effort', 'off'],
  ['anthropic', 'claude-sonnet-4-6', 'effort', 'off'],
  ['anthropic', 'claude-opus-4-8', 'effort', 'off'],
  ['anthropic', 'claude-fable-5-1', 'effort', 'on'],
  ['anthropic', 'claude-opus-5-5', 'effort', 'on'],
  ['anthropic-compatible', 'test-model', 'never', '', 'anthropic-compatible'],
  ['gemini', 'gemini-2.5-flash', 'effort', 'on off'],
  ['gemini', 'gemini-2.5-pro', 'effort', 'on'],
  ['gemini', 'gemini-3.1-pro-preview', 'effort', 'on'],
  ['gemini-compatible', 'test-model', 'never', '', 'gemini-compatible'],
  ['vertex', 'gemini-2.5-flash', 'effort', 'on off'],
  ['vertex', 'claude-sonnet-4-5', 'effort', 'off'],
  ['vertex', 'mistral-medium-3', 'never'],
  ['vertex', 'meta/llama-3.3-70b-instruct-maas', 'never'],
  ['bedrock', 'amazon.nova-lite-v1:0', 'never'],
  ['bedrock', 'us.amazon.nova-2-lite-v1:0', 'effort', 'off'],
  ['bedrock', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'effort', 'off'],
  ['bedrock', 'us.meta.llama3-3-70b-instruct-v1:0', 'never'],
  ['bedrock', 'us.deepseek.r1-v1:0', 'always'],
  ['bedrock', 'deepseek.v3.2', 'effort', 'off'],
  ['bedrock', 'openai.gpt-oss-120b-1:0', 'effort', 'on'],
  ['bedrock', 'mistral.mistral-large-2407-v1:0', 'never'],
  ['bedrock', 'cohere.command-r-plus-v1:0', 'never'],
  ['bedrock', 'qwen.qwen3-32b-v1:0', 'never'],
  ['deepseek', 'deepseek-v4-flash', 'effort', 'on off'],
  ['moonshot', 'kimi-k2.6', 'switch', 'on off'],
  ['moonshot', 'kimi-k3', 'effort', 'on'],
  ['moonshot', 'moonshot-v1-128k', 'never'],
  ['xai', 'grok-4', 'always'],
  ['xai', 'grok-4.3', 'effort', 'on off'],
  ['xai', 'grok-4.5', 'effort', 'on'],
  ['xai', 'grok-4.20-non-reasoning', 'never'],
  ['zai', 'glm-4.7', 'switch', 'on off'],
  ['zhipu', 'glm-5.2', 'switch', 'on off'],
  ['minimax', 'MiniMax-M2', 'always'],
  ['dashscope', 'qwen-plus', 'effort', 'off'],
  ['dashscope', 'qwen3-32b', 'effort', 'on off'],
  ['dashscope', 'qwen3.5-plus', 'effort', 'on off'],
  ['groq', 'openai/gpt-oss-120b', 'effort', 'on'],
  ['groq', 'qwen/qwen3-32b', 'switch', 'on off'],
  ['groq', 'llama-3.3-70b-versatile', 'never'],
  ['mistral', 'mistral-medium-3.5', 'effort', 'off'],
  ['mistral', 'mistral-large-latest', 'never'],
  ['mistral', 'magistral-medium-latest', 'always'],
  ['cohere', 'command-a-03-2025', 'never', '', 'cohere'],
  ['cohere', 'command-a-reasoning-08-2025', 'effort', 'on off', 'cohere'],
  ['perplexity', 'sonar-pro', 'never'],
  ['perplexity', 'sonar-reasoning-pro', 'always'],
  ['cerebras', 'gpt-oss-120b', 'effort', 'on'],
  ['cerebras', 'llama-3.3-70b', 'never'],
  ['fireworks', 'accounts/fireworks/models/gpt-oss-120b', 'effort', 'on'],
  ['fireworks', 'accounts/fireworks/models/kimi-k2', 'never'],
  ['together', 'openai/gpt-oss-120b', 'effort', 'on'],
  ['together', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', 'never'],
  ['openrouter', 'anthropic/claude-sonnet-4.5', 'effort', 'off'],
  ['openrouter', 'openai/gpt-5-mini', 'effort', 'on'],
  ['vercel', 'anthropic/claude-sonnet-4.5', 'effort', 'off'],
  ['databricks', 'databricks-gpt-oss-120b', 'effort', 'on'],
  ['databricks', 'databricks-claude-sonnet-4-5', 'effort', 'off'],
  ['databricks', 'databricks-meta-llama-3-3-70b-instruct', 'never'],
  ['snowflake', 'claude-sonnet-4-5', 'effort', 'off'],
  ['snowflake', 'llama3.1-70b', 'never'],
  ['nvidia', 'meta/llama-3.3-70b-instruct', 'never'],
  ['nvidia', 'openai/gpt-oss-120b', 'effort', 'on'],
  ['volcengine', 'doubao-seed-1-6', 'effort', 'on off'],
  ['siliconflow', 'Qwen/Qwen3-32B', 'effort', 'on off'],
  ['modelscope', 'Qwen/Qwen3-32B', 'switch', 'on off'],
  ['ollama', 'gpt-oss:20b', 'effort', 'on'],
  ['ollama', 'qwen3:8b', 'switch', 'on off', 'ollama in its own words'],
  ['lm-studio', 'local', 'never'],
  ['vllm', 'local', 'never'],
  ['sglang', 'local', 'never'],
  ['llama-cpp', 'local', 'never'],
  ['tgi', 'tgi', 'never'],
  ['ai21', 'jamba-large', 'never'],
  ['baichuan', 'Baichuan4', 'never'],
  ['baseten', 'moonshotai/Kimi-K2-Instruct', 'never'],
  ['cloudflare', '@cf/meta/llama-3.3-70b', 'never'],
  ['cloudflare', '@cf/openai/gpt-oss-120b', 'effort', 'on'],
  ['deepinfra', 'meta-llama/Llama-3.3-70B-Instruct', 'never'],
  ['featherless', 'meta-llama/Llama-3.3-70B-Instruct', 'never'],
  ['friendli', 'meta-llama-3.3-70b-instruct', 'never'],
  ['huggingface', 'openai/gpt-oss-120b:cheapest', 'effort', 'on'],
  ['hunyuan', 'hunyuan-turbos-latest', 'never'],
  ['hyperbolic', 'Qwen/Qwen2.5-72B-Instruct', 'never'],
  ['iflytek', '4.0Ultra', 'never'],
  ['inception', 'mercury-2', 'never'],
  ['litellm', 'anything', 'never'],
  ['nebius', 'meta-llama/Llama-3.3-70B-Instruct', 'never'],
  ['novita', 'openai/gpt-oss-120b', 'effort', 'on'],
  ['openai-compatible', 'test-model', 'never', '', 'openai-compatible'],
  ['oci', 'test-model', 'effort', 'on', 'oci'],
  ['ovhcloud', 'gpt-oss-120b', 'effort', 'on'],
  ['qianfan', 'ernie-4.5-turbo-128k', 'never'],
  ['sambanova', 'gpt-oss-120b', 'effort', 'on'],
  ['sap-ai-core', 'gpt-test', 'never', '', 'sap-ai-core'],
  ['scaleway', 'gpt-oss-120b', 'effort', 'on'],
  ['sluice', 'anything', 'never'],
  ['stepfun', 'step-2-mini', 'never'],
  ['wandb', 'openai/gpt-oss-120b', 'effort', 'on'],
  ['watsonx', 'test-model', 'never', '', 'watsonx'],
];

/** Each kind that chats, with models that are told apart by what they refuse. */
export const rows: readonly Row[] = told.map(([kind, model, control, more = '', made]) => ({
  kind,
  model,
  control,
  ...(more.includes('on') ? { byDefault: true as const } : {}),
  ...(more.includes('off') ? { stops: true as const } : {}),
  ...(made === undefined ? {} : { made }),
}));
