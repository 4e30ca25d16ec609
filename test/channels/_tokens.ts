import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** A place that gives out tokens for a form, one after the other, and what it answers instead while `refuses` is set. */
export interface TokenPlace extends ScriptedUpstream {
  refuses: { readonly status: number; readonly body: object } | undefined;
}

/** Starts one on this machine; its tokens are good for an hour. */
export async function startTokenPlace(): Promise<TokenPlace> {
  let given = 0;
  const server = await startUpstream((_request, response) => {
    const { status, body } = place.refuses ?? {
      status: 200,
      body: { access_token: `token-${++given}`, token_type: 'Bearer', expires_in: 3600 },
    };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const place: TokenPlace = Object.assign(server, { refuses: undefined });
  return place;
}
