/** Gets access tokens from Microsoft Entra ID, and defines the channel option that selects the identity. */
import { z } from 'zod';
import { env, requirePackage, secret } from 'sluice';
import type { AccessToken } from 'sluice/channel-kit';
import type { TokenCredential } from '@azure/identity';

/** Which identity is shown to Microsoft Entra ID, as an option of a channel. What is left out of a workload is read from its variables. */
export const entraIdentity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('secret').describe('kind of identity'),
    tenant: z.string().min(1).describe('id of the tenant'),
    client: z.string().min(1).describe('id of the application, or of a managed identity'),
    secret: secret(z.string().min(1)).describe('secret of the application'),
  }),
  z.strictObject({
    kind: z.literal('workload').describe('kind of identity'),
    tenant: z.string().optional().describe('id of the tenant'),
    client: z.string().optional().describe('id of the application, or of a managed identity'),
    tokenFile: z.string().optional().describe("file with the token of the pod's service account"),
  }),
  z.strictObject({
    kind: z.literal('managed').describe('kind of identity'),
    client: z.string().optional().describe('id of the application, or of a managed identity'),
  }),
  z.strictObject({ kind: z.literal('default').describe('kind of identity') }),
]);

/** See {@link entraIdentity}. */
export type EntraIdentity = z.output<typeof entraIdentity>;

/** HTTP client for the endpoints of Entra ID, as the library's pipeline takes it. */
export type EntraTransport = NonNullable<
  ConstructorParameters<typeof import('@azure/identity').ClientSecretCredential>[3]
>['httpClient'];

const names: Readonly<Record<EntraIdentity['kind'], string>> = {
  secret: 'the client secret in the config',
  workload: 'the workload identity',
  managed: 'the managed identity',
  default: 'the default credential chain',
};

const advice: Readonly<Record<EntraIdentity['kind'], string>> = {
  secret: 'Check tenant, client and secret, and whether the secret has expired.',
  workload:
    'Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE, or give tenant, client and tokenFile, and let the pool trust them.',
  managed:
    'Give this machine a managed identity that may use the resource; name it by client where it has several.',
  default:
    'Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, run "az login", or give identity in the config.',
};

/** The library's pieces that are used here. */
type Library = typeof import('@azure/identity');

/**
 * Asks Entra ID for access tokens of a scope. The library that knows how is loaded by the first question; `transport` replaces the way to
 * the endpoints. Throws where the library is not installed.
 */
export function entraTokens(
  identity: EntraIdentity,
  scope: string,
  transport?: EntraTransport,
): () => Promise<AccessToken> {
  requirePackage('@azure/identity', '4', 'ask Microsoft Entra ID for tokens');
  let credential: Promise<TokenCredential> | undefined;
  return async () => {
    try {
      credential ??= import('@azure/identity').then((library) => credentialOf(library, identity, transport));
      const given = await (await credential).getToken(scope);
      if (given === null) throw new Error('no token was given');
      return { token: given.token, expiresAtMs: given.expiresOnTimestamp };
    } catch (error) {
      throw new Error(
        `Microsoft Entra ID returned no access token for ${names[identity.kind]}: ${reasonOf(error)}. ${advice[identity.kind]}`,
        { cause: error },
      );
    }
  };
}

function credentialOf(
  library: Library,
  identity: EntraIdentity,
  httpClient: EntraTransport,
): TokenCredential {
  const way = {
    ...(httpClient === undefined ? {} : { httpClient }),
    // A private cloud is not in the list of all clouds that the library asks Microsoft for.
    ...(isPrivate(env('AZURE_AUTHORITY_HOST')) ? { disableInstanceDiscovery: true } : {}),
  };
  switch (identity.kind) {
    case 'secret':
      return new library.ClientSecretCredential(identity.tenant, identity.client, identity.secret, way);
    case 'workload': {
      const { tenant = env('AZURE_TENANT_ID'), client = env('AZURE_CLIENT_ID') } = identity;
      const { tokenFile = env('AZURE_FEDERATED_TOKEN_FILE') } = identity;
      return new library.WorkloadIdentityCredential({
        ...way,
        ...(tenant === undefined ? {} : { tenantId: tenant }),
        ...(client === undefined ? {} : { clientId: client }),
        ...(tokenFile === undefined ? {} : { tokenFilePath: tokenFile }),
      });
    }
    case 'managed':
      return identity.client === undefined
        ? new library.ManagedIdentityCredential(way)
        : new library.ManagedIdentityCredential({ clientId: identity.client, ...way });
    case 'default':
      return new library.DefaultAzureCredential(way);
  }
}

/** Sign-in hosts of the public clouds: https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud */
const publicHosts =
  /(?:^|\.)(?:microsoftonline\.(?:com|us|de)|chinacloudapi\.cn|microsoftonline\.cn|windows\.net)$/;

function isPrivate(authority: string | undefined): boolean {
  if (authority === undefined || authority === '') return false;
  const address = authority.includes('://') ? authority : `https://${authority}`;
  return URL.canParse(address) && !publicHosts.test(new URL(address).hostname);
}

/** Returns the error of Entra ID in one line. It names tenants and applications, and no secret. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // The library writes: Error(s): … - Timestamp: … - Description: what was said. Trace ID: … - Correlation ID: …
  const description = /Description: (.*)/s.exec(text)?.[1] ?? text;
  const [line = ''] = description.split('\n');
  return line
    .replace(/[\s-]+(?:Trace ID|Correlation ID|Timestamp):.*$/, '')
    .slice(0, 300)
    .replace(/\.$/, '');
}
