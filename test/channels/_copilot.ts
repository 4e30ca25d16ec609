import type { ServerResponse } from 'node:http';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/** GitHub and Copilot at one address. */
export interface Copilot extends ScriptedUpstream {
  /** Tokens of Copilot's that were given out, the latest last; only that one is taken. */
  readonly tokens: string[];
  /** Takes no token that was given out so far. */
  expire(): void;
  /** True when the account has a subscription. */
  hasSubscription: boolean;
}

type Json = Readonly<Record<string, unknown>>;

const models = [
  { id: 'gpt-4o', object: 'model', capabilities: { type: 'chat' } },
  { id: 'gpt-5.6-sol', object: 'model', capabilities: { type: 'chat' }, supported_endpoints: ['/responses'] },
];

/** Starts an account whose token of GitHub's is `key`, which refuses what Copilot refuses and answers the rest by `model`. */
export async function startCopilot(
  key: string,
  model: (request: SeenRequest, response: ServerResponse) => void,
): Promise<Copilot> {
  let given = 0;
  let latest: string | undefined;
  const answer = (response: ServerResponse, status: number, body: object | string): void => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, {
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
    });
    response.end(text);
  };
  const upstream = await startUpstream((request, response) => {
    const { headers } = request;
    if (request.url === '/copilot_internal/v2/token') {
      // github:microsoft/vscode-copilot-chat, src/platform/authentication/common/copilotToken.ts, `StandardErrorEnvelope` and `ErrorEnvelope`
      if (headers.authorization !== `token ${key}`)
        answer(response, 401, { message: 'Bad credentials', status: '401' });
      else if (!copilot.hasSubscription)
        answer(response, 403, {
          message: 'Resource not accessible by integration',
          error_details: { message: 'No access' },
        });
      else {
        latest = `tid=${++given};exp=1;sku=individual:secret-${given}`;
        copilot.tokens.push(latest);
        answer(response, 200, {
          token: latest,
          expires_at: Math.floor(Date.now() / 1000) + 1800,
          refresh_in: 1500,
          // No address of Copilot's: tokens must not be sent there.
          endpoints: { api: 'https://copilot.evil.example' },
        });
      }
      return;
    }
    const refusal = refusalOf(request, latest);
    if (refusal !== undefined) answer(response, refusal.status, refusal.body);
    else if (request.url === '/models') answer(response, 200, { object: 'list', data: models });
    else model(request, response);
  });
  const copilot: Copilot = Object.assign(upstream, {
    tokens: [] as string[],
    hasSubscription: true,
    expire: () => {
      latest = undefined;
    },
  });
  return copilot;
}

interface Refusal {
  readonly status: number;
  readonly body: object | string;
}

function refusalOf({ url, headers, body }: SeenRequest, token: string | undefined): Refusal | undefined {
  // github:Gitlawb/openclaude#1746
  if (token === undefined || headers.authorization !== `Bearer ${token}`)
    return { status: 401, body: 'IDE token expired: unauthorized: token expired\n' };
  // github:BerriAI/litellm#13256, github:leona/helix-gpt#73
  if (headers['editor-version'] === undefined)
    return { status: 400, body: 'bad request: missing Editor-Version header for IDE auth\n' };
  if (!/^[\w-]+\/\d/.test(String(headers['editor-version'])))
    return { status: 400, body: 'bad request: unknown Editor-Version header for IDE auth\n' };
  // github:alvinunreal/tmuxai#144
  if (headers['copilot-integration-id'] === undefined)
    return { status: 400, body: 'bad request: missing required Copilot-Integration-Id header\n' };
  const text = body.toString();
  const error = (message: string, code = ''): Refusal => ({
    status: 400,
    body: { error: { message, code } },
  });
  // github:microsoft/vscode#292901
  if (/"(?:image_url|input_image)"/.test(text) && headers['copilot-vision-request'] !== 'true')
    return error('missing required Copilot-Vision-Request header for vision requests');
  const { model } = (text === '' ? {} : JSON.parse(text)) as Json;
  // github:egoist/chatwise-releases#1273
  if (/^gpt-(?:5\.[3-9]|6)/.test(String(model)) && url.startsWith('/chat/completions'))
    return error(
      `model "${String(model)}" is not accessible via the /chat/completions endpoint`,
      'unsupported_api_for_model',
    );
  return undefined;
}
