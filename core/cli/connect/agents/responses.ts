import { join } from 'node:path';
import type { Agent } from '../agent.ts';
import { toml } from '../documents/toml.ts';

/** Codex: a provider in `config.toml`. https://developers.openai.com/codex/config-sample, measured with 0.171. */
export const codex: Agent = {
  name: 'codex',
  title: 'Codex CLI',
  plan({ url, key, model }, { home, variable }) {
    const provider = {
      name: 'Sluice',
      base_url: `${url}/v1`,
      wire_api: 'responses',
      ...('value' in key ? { experimental_bearer_token: key.value } : { env_key: key.env }),
    };
    return {
      files: [
        {
          path: join(variable('CODEX_HOME') ?? join(home, '.codex'), 'config.toml'),
          syntax: toml,
          edits: [
            { path: ['model'], value: model },
            { path: ['model_provider'], value: 'sluice' },
            { path: ['model_providers', 'sluice'], value: provider },
          ],
        },
      ],
    };
  },
  run: {
    program: 'codex',
    arguments: (question) => ['exec', '--skip-git-repo-check', '--json', question],
    tool: 'get_goal',
  },
};
