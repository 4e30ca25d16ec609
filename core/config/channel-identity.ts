import type { ChannelOptions, ChannelTools, OAuth2Identity } from '../sdk/define.ts';
import type { Settings } from '../settings/index.ts';
import { bearerTokens } from '../upstream/credentials/access-tokens.ts';
import { withAuthorization } from '../upstream/credentials/authorization.ts';
import { oauthTokens } from '../upstream/credentials/oauth-tokens.ts';
import { fillingIn, StandIn } from '../upstream/credentials/stand-in.ts';
import { createHttpClient } from '../upstream/send.ts';

/** Returns the tools of a channel whose requests show an access token of an identity, besides its keys where it has some. */
export function withIdentity(
  tools: ChannelTools,
  identity: OAuth2Identity,
  { proxy, tls, timeouts }: ChannelOptions,
  { connect, idle }: Settings['timeouts'],
): ChannelTools {
  const { clientId: id, clientSecret: secret, scope, audience, clientAuth = 'basic', tokenUrl } = identity;
  // Headers for the provider, and the name in its certificate, are not for the authorization server.
  const { servername: _, ...ownTls } = tls ?? {};
  const http = createHttpClient({
    connectTimeout: timeouts?.connect ?? connect,
    idleTimeout: timeouts?.idle ?? idle,
    proxy,
    tls: ownTls,
  });
  tools.onClose(() => http.close());
  const requestToken = oauthTokens(http, {
    name: `The authorization server at ${new URL(tokenUrl).host}`,
    url: tokenUrl,
    form: {
      grant_type: 'client_credentials',
      ...(scope === undefined ? {} : { scope }),
      ...(audience === undefined ? {} : { audience }),
      ...(clientAuth === 'post' ? { client_id: id, client_secret: secret } : {}),
    },
    ...(clientAuth === 'basic' ? { basic: { id, secret } } : {}),
    credentialName: `the client "${id}"`,
    hint: 'Check tokenUrl, clientId, clientSecret, scope and clientAuth of the identity.',
  });
  const signed = withAuthorization(tools, bearerTokens(requestToken, tools.log));
  if (tools.keys.length > 0) return signed;
  const standIn = new StandIn();
  return fillingIn({ ...signed, keys: [standIn.key] }, standIn, () => undefined);
}
