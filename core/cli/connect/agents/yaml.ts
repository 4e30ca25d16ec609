/** Settings of agents that keep at least one of their settings files in YAML. */
import { join } from 'node:path';
import { editsOf, keyText, type Agent, type SettingsEnvironment } from '../agent.ts';
import { json } from '../documents/json.ts';
import { yaml } from '../documents/yaml.ts';
import { configFolder } from './chat-completions.ts';

/** aider: https://aider.chat/docs/config/aider_conf.html, measured with 0.86. */
export const aider: Agent = {
  name: 'aider',
  title: 'aider',
  plan({ url, key, model, smallModel }, { home }) {
    const settings = {
      model: `openai/${model}`,
      'weak-model': `openai/${smallModel}`,
      'openai-api-base': `${url}/v1`,
      'openai-api-key': 'value' in key ? key.value : undefined,
    };
    return {
      files: [
        {
          path: join(home, '.aider.conf.yml'),
          syntax: yaml,
          edits: editsOf(settings),
        },
      ],
      ...('env' in key && key.env !== 'OPENAI_API_KEY'
        ? { exports: { OPENAI_API_KEY: `"$${key.env}"` } }
        : {}),
    };
  },
  run: {
    program: 'aider',
    arguments: (question) => [
      '--no-git',
      '--yes-always',
      '--no-check-update',
      '--no-analytics',
      '--no-show-model-warnings',
      '--chat-mode',
      'ask',
      '--message',
      question,
    ],
  },
};

/** Continue: a model of its own configuration file. https://docs.continue.dev/reference, measured with 1.5. */
export const continueDev: Agent = {
  name: 'continue',
  title: 'Continue',
  aliases: ['cn'],
  plan(access, { home, variable }) {
    const model = {
      name: 'Sluice',
      provider: 'openai',
      model: access.model,
      apiBase: `${access.url}/v1`,
      apiKey: keyText(access, (name) => `\${{ secrets.${name} }}`),
      roles: ['chat', 'edit', 'apply'],
      capabilities: ['tool_use'],
    };
    return {
      files: [
        {
          path: join(variable('CONTINUE_GLOBAL_DIR') ?? join(home, '.continue'), 'config.yaml'),
          syntax: yaml,
          edits: [
            { path: ['name'], value: 'Sluice', isDefault: true },
            { path: ['version'], value: '1.0.0', isDefault: true },
            { path: ['schema'], value: 'v1', isDefault: true },
            { path: ['models'], by: 'name', value: model },
          ],
        },
      ],
      notes: ['Continue starts with the first model of its list. Choose the model "Sluice" there.'],
    };
  },
  run: { program: 'cn', arguments: (question) => ['-p', question, '--readonly'], tool: 'List' },
};

/** goose: a provider in a file of its own. https://goose-docs.ai, "Declarative providers". */
export const goose: Agent = {
  name: 'goose',
  title: 'goose',
  plan({ url, key, model, inputLimit = 128_000 }, environment) {
    const folder = join(configFolder(environment), 'goose');
    const variable = 'env' in key ? key.env : 'SLUICE_API_KEY';
    const provider = {
      name: 'sluice',
      engine: 'openai',
      display_name: 'Sluice',
      description: 'The gateway',
      api_key_env: variable,
      base_url: url,
      base_path: 'v1/chat/completions',
      models: [{ name: model, context_limit: inputLimit }],
      supports_streaming: true,
    };
    return {
      files: [
        {
          path: join(folder, 'custom_providers', 'sluice.json'),
          syntax: json,
          edits: Object.entries(provider).map(([name, value]) => ({ path: [name], value })),
        },
        {
          path: join(folder, 'config.yaml'),
          syntax: yaml,
          edits: [
            { path: ['GOOSE_PROVIDER'], value: 'sluice' },
            { path: ['GOOSE_MODEL'], value: model },
          ],
        },
      ],
      ...('value' in key ? { exports: { SLUICE_API_KEY: 'YOUR-KEY' } } : {}),
      notes: ['goose reads keys from its keychain or from environment variables, not from these files.'],
    };
  },
};

/** `llm` by Simon Willison: further models, and its file of keys. https://llm.datasette.io, measured. */
export const llm: Agent = {
  name: 'llm',
  title: 'llm',
  plan({ url, key, model }, environment) {
    const folder = llmFolder(environment);
    const entry = {
      model_id: `sluice/${model}`,
      model_name: model,
      api_base: `${url}/v1`,
      api_key_name: 'sluice',
      supports_tools: true,
      supports_schema: true,
    };
    return {
      files: [
        {
          path: join(folder, 'extra-openai-models.yaml'),
          syntax: yaml,
          edits: [{ path: [], by: 'model_id', value: entry }],
        },
        ...('value' in key
          ? [
              {
                path: join(folder, 'keys.json'),
                syntax: json,
                edits: [{ path: ['sluice'], value: key.value }],
              },
            ]
          : []),
      ],
      notes: [
        `To use the model run: llm -m sluice/${model} 'Hello'. To make it the default run: llm models default sluice/${model}`,
        ...('env' in key
          ? [
              `llm cannot read this key from an environment variable. Run: llm keys set sluice --value "$${key.env}"`,
            ]
          : []),
      ],
    };
  },
  run: {
    program: 'llm',
    arguments: (question, { model }) => ['-m', `sluice/${model}`, '--no-log', '-T', 'llm_version', question],
    tool: 'llm_version',
  },
};

function llmFolder(environment: SettingsEnvironment): string {
  const { home, platform, variable } = environment;
  const own = variable('LLM_USER_PATH');
  if (own !== undefined) return own;
  return platform === 'darwin'
    ? join(home, 'Library', 'Application Support', 'io.datasette.llm')
    : join(configFolder(environment), 'io.datasette.llm');
}
