import { join } from 'node:path';
import { editsOf, type Access, type Agent } from '../agent.ts';
import { json } from '../documents/json.ts';

/** Claude Code: `env` of its settings file. https://code.claude.com/docs/en/settings, measured with 2.1. */
export const claudeCode: Agent = {
  name: 'claude-code',
  title: 'Claude Code',
  aliases: ['claude'],
  plan(access, { home, variable }) {
    const { url, key, model, smallModel } = access;
    const variables = {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: smallModel,
      ANTHROPIC_AUTH_TOKEN: 'value' in key ? key.value : undefined,
    };
    return {
      files: [
        {
          path: join(variable('CLAUDE_CONFIG_DIR') ?? join(home, '.claude'), 'settings.json'),
          syntax: json,
          edits: [
            ...editsOf(variables, 'env'),
            ...editsOf({ apiKeyHelper: 'env' in key ? `printenv ${key.env}` : undefined }),
          ],
        },
      ],
      notes: [
        'Unset ANTHROPIC_API_KEY in your shell, because Claude Code also sends that key to the gateway.',
        ...contextNote(access),
      ],
    };
  },
  run: {
    program: 'claude',
    arguments: (question) => ['-p', question, '--allowedTools', 'Read'],
    env: { CLAUDE_CODE_MAX_RETRIES: '0', DISABLE_AUTOUPDATER: '1' },
    tool: 'Read',
  },
};

function contextNote({ model, inputLimit }: Access): readonly string[] {
  if (model.startsWith('claude-') || inputLimit === undefined) return [];
  return [
    `Claude Code does not know the context length of ${model}, which is ${inputLimit} tokens, and may compact too late.`,
  ];
}
