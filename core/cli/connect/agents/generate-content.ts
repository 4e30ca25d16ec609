import { join } from 'node:path';
import { editsOf, type Agent } from '../agent.ts';
import { env as envFile } from '../documents/env.ts';
import { json } from '../documents/json.ts';

/** Gemini CLI: the sign-in and the model in its settings, address and key in its `.env`. Measured with 0.61. */
export const geminiCli: Agent = {
  name: 'gemini',
  title: 'Gemini CLI',
  aliases: ['gemini-cli'],
  plan({ url, key, model }, { home }) {
    const folder = join(home, '.gemini');
    const variables = {
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: 'value' in key ? key.value : undefined,
    };
    return {
      files: [
        {
          path: join(folder, '.env'),
          syntax: envFile,
          edits: editsOf(variables),
        },
        {
          path: join(folder, 'settings.json'),
          syntax: json,
          edits: [
            { path: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' },
            { path: ['model', 'name'], value: model },
          ],
        },
      ],
      ...('env' in key && key.env !== 'GEMINI_API_KEY'
        ? { exports: { GEMINI_API_KEY: `"$${key.env}"` } }
        : {}),
      notes: ['A .env file in the project folder is used in place of the one in ~/.gemini.'],
    };
  },
  run: {
    program: 'gemini',
    arguments: (question) => ['--skip-trust', '-p', question],
    tool: 'list_directory',
  },
};
