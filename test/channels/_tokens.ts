import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** Token endpoint that issues numbered tokens. Sends `refuses` instead while it is set. */
export interface TokenServer extends ScriptedUpstream {
  refuses: { readonly status: number; readonly body: object } | undefined;
}

/** Starts a token endpoint whose tokens are valid for an hour. */
export async function startTokenServer(): Promise<TokenServer> {
  let count = 0;
  const given = (): object => {
    const token = `token-${++count}`;
    // Fields of OAuth 2.0, and those of GitHub's tokens for Copilot.
    const copilot = { token, expires_at: Math.floor(Date.now() / 1000) + 3600 };
    return { access_token: token, token_type: 'Bearer', expires_in: 3600, ...copilot };
  };
  const server = await startUpstream((_request, response) => {
    const { status, body } = tokenServer.refuses ?? {
      status: 200,
      body: given(),
    };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const tokenServer: TokenServer = Object.assign(server, { refuses: undefined });
  return tokenServer;
}
