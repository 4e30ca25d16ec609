import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider, type ClientMetadata } from 'oidc-provider';

/** A person with an account. Tests change the groups. */
export interface Account {
  readonly email: string;
  readonly name: string;
  groups: readonly string[];
}

/** The certified provider `oidc-provider`, with pages for login and consent of its own. */
export interface IdentityProvider {
  readonly url: string;
  /** By their logins. Any password is right. */
  readonly accounts: Map<string, Account>;
  close(): Promise<void>;
}

/** Starts one with this client, on a port that is free. The client is registered before the gateway that it is has an address. */
export async function startIdentityProvider(client: ClientMetadata): Promise<IdentityProvider> {
  const accounts = new Map<string, Account>();
  let serve: ((...args: Parameters<ReturnType<Provider['callback']>>) => unknown) | undefined;
  const server = createServer((request, response) => void serve?.(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(url, {
    clients: [client],
    scopes: ['openid', 'offline_access', 'profile', 'email', 'groups'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    cookies: { keys: ['a key of tests'] },
    ttl: {
      Session: 3_600,
      Interaction: 600,
      Grant: 3_600,
      IdToken: 600,
      AccessToken: 600,
      RefreshToken: 3_600,
    },
    features: { rpInitiatedLogout: { enabled: true }, backchannelLogout: { enabled: true } },
    // Offered also to clients that do not ask for consent each time.
    issueRefreshToken: (_ctx, one) => Promise.resolve(one.grantTypeAllowed('refresh_token')),
    findAccount(_ctx, id) {
      const account = accounts.get(id);
      if (account === undefined) return undefined;
      return {
        accountId: id,
        claims: () => ({
          sub: id,
          email: account.email,
          email_verified: true,
          name: account.name,
          groups: [...account.groups],
        }),
      };
    },
  });
  // What it warns about is meant for production.
  serve = provider.callback();
  return {
    url,
    accounts,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
