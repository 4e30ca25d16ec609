/** Exchanges the token of a GitHub account for access tokens of GitHub Copilot, and holds the headers and the address for its API. */
import { hideSecret, isObject, parseObject, type HttpClient } from 'sluice';
import type { AccessToken } from 'sluice/channel-kit';

/**
 * The headers without which requests are answered 400 (`missing Editor-Version header for IDE auth`, github:BerriAI/litellm#13256), as
 * clients of other makers send them: github:ericc-ch/copilot-api (src/lib/api-config.ts), opencode-copilot-auth 0.0.9 (index.mjs), LiteLLM 1.110.2
 * (llms/github_copilot/common_utils.py).
 */
export const editor = {
  'copilot-integration-id': 'vscode-chat',
  'editor-version': 'vscode/1.105.1',
  'editor-plugin-version': 'copilot-chat/0.32.4',
  'user-agent': 'GitHubCopilotChat/0.32.4',
  'openai-intent': 'conversation-panel',
  'x-github-api-version': '2025-05-01',
};

/** Base URL for accounts whose token names none. */
export const defaultBase = 'https://api.githubcopilot.com';

/** Account: its GitHub token, and the address that its Copilot tokens name. */
interface Account {
  readonly key: string;
  readonly tokenUrl: string;
  /** The address of its plan, set with every token. */
  readonly plan: { base: string };
}

/** Returns a function that gets a new access token. It rejects with a message for the operator. */
export function copilotTokens(
  http: Pick<HttpClient, 'read'>,
  { key, tokenUrl, plan }: Account,
): () => Promise<AccessToken> {
  hideSecret(key);
  return async () => {
    const startedAt = Date.now();
    try {
      const answer = await http.read({
        url: tokenUrl,
        headers: { ...editor, accept: 'application/json', authorization: `token ${key}` },
      });
      const { token, expires_at: end, endpoints } = parseObject(answer.toString()) ?? {};
      if (typeof token !== 'string' || token === '' || typeof end !== 'number')
        throw new Error('The response has no token.');
      const base = isObject(endpoints) ? endpoints['api'] : undefined;
      plan.base = typeof base === 'string' && isCopilot(base) ? base : defaultBase;
      return { token, expiresAtMs: end * 1000, lifetimeMs: Math.max(0, end * 1000 - startedAt) };
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/\.$/, '') : String(error);
      throw new Error(
        `GitHub returned no Copilot token for the token in the config: ${why}. Check that the account has a Copilot subscription, and get a new token with: sluice login github-copilot.`,
        { cause: error },
      );
    }
  };
}

/** Tokens are shown to Copilot alone: LiteLLM 1.110.2, llms/github_copilot/github_host.py. */
function isCopilot(base: string): boolean {
  if (!URL.canParse(base)) return false;
  const { protocol, hostname } = new URL(base);
  return (
    protocol === 'https:' && /(?:^|\.)githubcopilot\.com$|^copilot-api\.[\w-]+\.ghe\.com$/.test(hostname)
  );
}
