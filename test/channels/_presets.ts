import { formatVoice, type ChannelUnderTest, type SeenRequest, type Voice } from 'sluice/testing';
import type { ChannelEntry, ChannelKind, ChannelOptions } from '../../core/sdk/define.ts';
import { kindFiles } from '../support/kind-files.ts';
import { agentVoice, mistralVoice } from './_voices.ts';

/** A channel kind with whatever options it may have. */
export type Kind = ((options: ChannelOptions & Readonly<Record<string, unknown>>) => ChannelEntry) &
  Pick<ChannelKind, 'spec'>;

/** A model of each preset, and the options that one cannot do without. */
export const presets: Readonly<
  Record<string, { readonly model: string; readonly options?: Readonly<Record<string, unknown>> }>
> = {
  ai21: { model: 'jamba-large' },
  baichuan: { model: 'Baichuan4' },
  baseten: { model: 'moonshotai/Kimi-K2-Instruct' },
  cerebras: { model: 'llama-3.3-70b' },
  cloudflare: { model: '@cf/meta/llama-3.3-70b', options: { account: '0'.repeat(32) } },
  dashscope: { model: 'qwen-plus' },
  databricks: {
    model: 'databricks-meta-llama-3-3-70b-instruct',
    options: { workspace: 'w.cloud.databricks.com' },
  },
  deepinfra: { model: 'meta-llama/Llama-3.3-70B-Instruct' },
  featherless: { model: 'meta-llama/Llama-3.3-70B-Instruct' },
  fireworks: { model: 'accounts/fireworks/models/kimi-k2' },
  friendli: { model: 'meta-llama-3.3-70b-instruct' },
  'github-models': { model: 'openai/gpt-4.1' },
  huggingface: { model: 'openai/gpt-oss-120b:cheapest' },
  hunyuan: { model: 'hunyuan-turbos-latest' },
  hyperbolic: { model: 'Qwen/Qwen2.5-72B-Instruct' },
  iflytek: { model: '4.0Ultra' },
  inception: { model: 'mercury-2' },
  litellm: { model: 'anything' },
  'llama-cpp': { model: 'local' },
  'lm-studio': { model: 'local' },
  minimax: { model: 'MiniMax-M2' },
  modelscope: { model: 'Qwen/Qwen3-32B' },
  moonshot: { model: 'kimi-k2.5' },
  nebius: { model: 'meta-llama/Llama-3.3-70B-Instruct' },
  novita: { model: 'deepseek/deepseek-v3.2' },
  nvidia: { model: 'meta/llama-3.3-70b-instruct' },
  'openai-compatible': { model: 'anything', options: { name: 'acme' } },
  ovhcloud: { model: 'Meta-Llama-3_3-70B-Instruct' },
  qianfan: { model: 'ernie-4.5-turbo-128k' },
  sambanova: { model: 'Meta-Llama-3.3-70B-Instruct' },
  scaleway: { model: 'llama-3.3-70b-instruct' },
  sglang: { model: 'local' },
  siliconflow: { model: 'Qwen/Qwen3-32B' },
  sluice: { model: 'anything' },
  snowflake: { model: 'openai-gpt-4.1', options: { account: 'MYORG-MY_ACCOUNT' } },
  stepfun: { model: 'step-2-mini' },
  tgi: { model: 'tgi' },
  together: { model: 'meta-llama/Llama-3.3-70B-Instruct-Turbo' },
  vercel: { model: 'anthropic/claude-sonnet-4.5' },
  vllm: { model: 'local' },
  volcengine: { model: 'doubao-seed-1-6' },
  wandb: { model: 'meta-llama/Llama-3.3-70B-Instruct' },
  xai: { model: 'grok-4' },
  zai: { model: 'glm-4.7' },
  zhipu: { model: 'glm-4.7' },
};

/** The kind of a preset, by its name. */
export async function presetKind(name: string): Promise<Kind> {
  const { default: kind } = (await import(kindFiles.get(name) ?? name)) as { default: Kind };
  return kind;
}

const chat = await formatVoice('chat-completions');
const messages = await formatVoice('messages');
/** Vertex AI has the model in the address. */
const named = ({ body, ...request }: SeenRequest): SeenRequest => ({
  ...request,
  body: Buffer.from(JSON.stringify({ model: 'm', ...(JSON.parse(body.toString()) as object) })),
});
const claudeOnVertex: Voice = {
  ...messages,
  hear: (request) => messages.hear(named(request)),
  whole: (events, request) => messages.whole(events, named(request)),
  stream: (events, request) => messages.stream(events, named(request)),
};

/** Kinds that stand on one provider's word for several makers' models: each of their families. */
const families: readonly (readonly [name: string, model: string, voice: Voice])[] = [
  ['vertex', 'gemini-2.5-flash', await formatVoice('generate-content')],
  ['vertex', 'claude-sonnet-4-5', claudeOnVertex],
  ['vertex', 'mistral-medium-3', mistralVoice],
  ['vertex', 'meta/llama-3.3-70b-instruct-maas', chat],
  ['databricks', 'databricks-claude-sonnet-4-5', messages],
  ['snowflake', 'claude-sonnet-4-5', messages],
  ['azure-foundry', 'claude-sonnet-4-5', messages],
  ['azure-foundry', 'gpt-4.1', chat],
  ['perplexity', 'openai/gpt-5.5', agentVoice],
  ['perplexity', 'sonar-pro', agentVoice],
];

interface TestedPreset extends ChannelUnderTest {
  readonly name: string;
  readonly model: string;
  readonly voice: Voice;
}

const rows = [
  ...Object.entries(presets).map(([name, { model, options = {} }]) => ({
    name,
    model,
    options,
    voice: chat,
  })),
  ...families.map(([name, model, voice]) => ({
    name,
    model,
    options: presets[name]?.options ?? {},
    voice,
  })),
];

/** Each preset, and each family of a kind with several, with the voice of its fake provider. */
export const testedPresets: readonly TestedPreset[] = await Promise.all(
  rows.map(async ({ name, model, options, voice }) => {
    const kind = await presetKind(name);
    return {
      name,
      model,
      voice,
      channel: ({ url, key }) => kind({ ...options, id: name, key, baseUrl: `${url}/v1`, models: [model] }),
    };
  }),
);
