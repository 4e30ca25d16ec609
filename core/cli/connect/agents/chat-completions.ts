/** Settings of agents that call the gateway with chat completions and keep their settings in JSON files. */
import { join } from 'node:path';
import type { JsonObject } from '../../../model/json.ts';
import { editsOf, keyText, type Access, type Agent, type SettingsEnvironment, type Plan } from '../agent.ts';
import { json } from '../documents/json.ts';

/** Returns the settings folder of programs that follow the XDG Base Directory Specification. */
export function configFolder({ home, variable }: SettingsEnvironment): string {
  return variable('XDG_CONFIG_HOME') ?? join(home, '.config');
}

/** Settings of opencode and its forks. */
function opencodePlan(access: Access, path: string): Plan {
  const { url, model, smallModel } = access;
  const provider: JsonObject = {
    npm: '@ai-sdk/openai-compatible',
    name: 'Sluice',
    options: { baseURL: `${url}/v1`, apiKey: keyText(access, (name) => `{env:${name}}`) },
    models: Object.fromEntries([...new Set([model, smallModel])].map((name) => [name, { name }])),
  };
  return {
    files: [
      {
        path,
        syntax: json,
        edits: [
          { path: ['model'], value: `sluice/${model}` },
          { path: ['small_model'], value: `sluice/${smallModel}` },
          { path: ['provider', 'sluice'], value: provider },
        ],
      },
    ],
  };
}

/** opencode: a provider of its own. https://opencode.ai/docs/providers, measured with 1.18. */
export const opencode: Agent = {
  name: 'opencode',
  title: 'opencode',
  plan: (access, environment) =>
    opencodePlan(access, join(configFolder(environment), 'opencode', 'opencode.json')),
  run: {
    program: 'opencode',
    arguments: (question) => ['run', question],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
    tool: 'todowrite',
  },
};

/** Kilo Code: its command line descends from opencode. https://kilo.ai/docs */
export const kilo: Agent = {
  name: 'kilo',
  title: 'Kilo Code',
  aliases: ['kilo-code', 'kilocode'],
  plan: (access, environment) => opencodePlan(access, join(configFolder(environment), 'kilo', 'kilo.json')),
};

/** Qwen Code: a model of the provider `openai`. Its own documentation, `model-providers.md`, measured with 0.24. */
export const qwenCode: Agent = {
  name: 'qwen-code',
  title: 'Qwen Code',
  aliases: ['qwen'],
  plan({ url, key, model }, { home }) {
    const envKey = 'env' in key ? key.env : 'SLUICE_API_KEY';
    const entry = { id: model, name: `${model} (Sluice)`, baseUrl: `${url}/v1`, envKey };
    return {
      files: [
        {
          path: join(home, '.qwen', 'settings.json'),
          syntax: json,
          edits: [
            { path: ['security', 'auth', 'selectedType'], value: 'openai' },
            { path: ['modelProviders', 'openai'], by: 'id', value: entry },
            { path: ['model', 'name'], value: model },
            ...editsOf({ [envKey]: 'value' in key ? key.value : undefined }, 'env'),
          ],
        },
      ],
    };
  },
  run: {
    program: 'qwen',
    arguments: (question) => ['-p', question],
    tool: 'list_directory',
  },
};

/** Cline: the provider `openai-compatible`, as `cline auth` writes it. Measured with 3.0. */
export const cline: Agent = {
  name: 'cline',
  title: 'Cline',
  plan(access, { home }) {
    const settings = {
      provider: 'openai-compatible',
      apiKey: keyText(access, () => ''),
      model: access.model,
      baseUrl: `${access.url}/v1`,
    };
    const entry = { settings, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' };
    if ('env' in access.key)
      return {
        files: [],
        notes: [
          'Cline stores its key in its own file and cannot read it from an environment variable. Run:',
          `  cline auth -p openai -k "$${access.key.env}" -m ${access.model} -b ${access.url}/v1`,
        ],
      };
    return {
      files: [
        {
          path: join(home, '.cline', 'data', 'settings', 'providers.json'),
          syntax: json,
          edits: [
            { path: ['version'], value: 1 },
            { path: ['lastUsedProvider'], value: 'openai-compatible' },
            { path: ['providers', 'openai-compatible'], value: entry },
          ],
        },
      ],
      notes: [
        `In the VS Code extension choose the provider "OpenAI Compatible", the base URL ${access.url}/v1 and the model ${access.model}.`,
      ],
    };
  },
};

/** Crush: a provider of its own. https://github.com/charmbracelet/crush, schema.json */
export const crush: Agent = {
  name: 'crush',
  title: 'Crush',
  plan(access, environment) {
    const { url, model, smallModel, inputLimit = 128_000 } = access;
    const models = [...new Set([model, smallModel])].map((id) => ({
      id,
      name: id,
      context_window: inputLimit,
      default_max_tokens: 8_192,
    }));
    const provider = {
      name: 'Sluice',
      type: 'openai-compat',
      base_url: `${url}/v1`,
      api_key: keyText(access, (name) => `$${name}`),
      models,
    };
    return {
      files: [
        {
          path: join(configFolder(environment), 'crush', 'crush.json'),
          syntax: json,
          edits: [
            { path: ['providers', 'sluice'], value: provider },
            { path: ['models', 'large'], value: { provider: 'sluice', model } },
            { path: ['models', 'small'], value: { provider: 'sluice', model: smallModel } },
          ],
        },
      ],
    };
  },
  run: { program: 'crush', arguments: (question) => ['run', '--quiet', question], tool: 'ls' },
};

/** Zed: an OpenAI-compatible provider, whose key is never in its settings. https://zed.dev/docs/ai/use-api-access */
export const zed: Agent = {
  name: 'zed',
  title: 'Zed',
  plan({ url, key, model, inputLimit = 128_000 }, environment) {
    const capabilities = { tools: true, images: true, parallel_tool_calls: true, prompt_cache_key: false };
    const entry = { name: model, display_name: `${model} (Sluice)`, max_tokens: inputLimit, capabilities };
    return {
      files: [
        {
          path: join(configFolder(environment), 'zed', 'settings.json'),
          syntax: json,
          edits: [
            { path: ['language_models', 'openai_compatible', 'sluice', 'api_url'], value: `${url}/v1` },
            {
              path: ['language_models', 'openai_compatible', 'sluice', 'available_models'],
              by: 'name',
              value: entry,
            },
            { path: ['agent', 'default_model'], value: { provider: 'sluice', model } },
          ],
        },
      ],
      notes: [
        `Zed stores keys in the keychain. Enter your key under "LLM Providers" in the agent settings, or start Zed with SLUICE_API_KEY${'env' in key ? `="$${key.env}"` : ''} in its environment.`,
      ],
    };
  },
};
