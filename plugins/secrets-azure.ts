/** Reads secrets of Azure Key Vault that the config names by reference: `azure:VAULT/SECRET?version=ID#FIELD`. */
import { z } from 'zod';
import {
  defineSecrets,
  requirePackage,
  secret,
  secretUrl,
  type SecretSource,
  type SecretTools,
} from 'sluice';

/** Schema of the identity for Microsoft Entra ID. */
const identity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('secret').describe('kind of identity'),
    tenant: z.string().min(1).describe('id of the tenant'),
    client: z.string().min(1).describe('id of the application, or of a managed identity'),
    secret: secret(z.string().min(1)).describe('secret of the application'),
  }),
  z.strictObject({ kind: z.literal('workload').describe('kind of identity') }),
  z.strictObject({
    kind: z.literal('managed').describe('kind of identity'),
    client: z.string().min(1).optional().describe('id of the application, or of a managed identity'),
  }),
  z.strictObject({ kind: z.literal('default').describe('kind of identity') }),
]);

const options = z.strictObject({
  /** Name of the vault for secrets whose reference names none. */
  vault: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]$/, 'must be the name of a key vault')
    .optional(),
  /**
   * Identity that reads secrets: `{ kind: 'secret' }`, `{ kind: 'workload' }` or `{ kind: 'managed' }`. Default: the default credential
   * chain of `@azure/identity`. Requires that package.
   */
  identity: identity.default({ kind: 'default' }),
  /** Domain of vaults, which depends on the cloud. */
  domain: z.enum(['vault.azure.net', 'vault.azure.cn', 'vault.usgovcloudapi.net']).default('vault.azure.net'),
  /** URL in place of the vault's, such as that of a private proxy. */
  endpoint: secretUrl(z.url({ protocol: /^https?$/ })).optional(),
});

type Options = z.output<typeof options>;

/** See Get Secret: https://learn.microsoft.com/rest/api/keyvault/secrets/get-secret/get-secret */
const apiVersion = '7.4';
const answered = z.object({ value: z.string() });
const refused = z.object({
  error: z.object({ code: z.string(), innererror: z.object({ code: z.string() }).nullish() }),
});

/** Maximum bytes of a response. A secret has at most 25 KB. */
const maxBytes = 256 * 1024;

const advice: Readonly<Record<number, string>> = {
  401: "the token is not one of the vault's tenant: check the identity",
  403: 'give the identity the role Key Vault Secrets User, or the permission "get" of an access policy, and let this network pass the firewall of the vault; a secret may also be disabled or have expired',
  429: 'the vault limits requests: read secrets less often with secrets.refresh',
};

/** Reads secrets of Azure Key Vault, by its REST API. */
export default defineSecrets({ name: 'secrets-azure', source: 'azure', options, open });

function open(chosen: Options, { http }: SecretTools): SecretSource {
  const token = entraTokens(chosen.identity, `https://${chosen.domain}/.default`);
  return {
    async read({ name, version, signal }) {
      const { vault, secretName } = locateSecret(name, chosen.vault);
      if (version !== undefined && !/^[0-9a-f]{32}$/i.test(version))
        throw new Error('the version of a secret of Azure is an id of 32 characters');
      const origin = (chosen.endpoint ?? `https://${vault}.${chosen.domain}`).replace(/\/+$/, '');
      const answer = await http.ask({
        url: `${origin}/secrets/${secretName}${version === undefined ? '' : `/${version}`}?api-version=${apiVersion}`,
        headers: { authorization: `Bearer ${await token()}` },
        limit: maxBytes,
        timeout: 60_000,
        signal,
      });
      const { status } = answer;
      if (status === 404) return undefined;
      if (status !== 200)
        throw new Error(
          `Azure Key Vault ${vault} returned status ${status}${codeOf(answer.text())}: ${advice[status] ?? 'see https://status.azure.com'}`,
        );
      return answered.parse(answer.json()).value;
    },
  };
}

function locateSecret(name: string, otherwise: string | undefined) {
  const [, vault = otherwise, secretName] =
    /^(?:([A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9])\/)?([A-Za-z0-9-]{1,127})$/.exec(name) ?? [];
  if (secretName === undefined) throw new Error('a secret of Azure is named VAULT/SECRET or SECRET');
  if (vault === undefined)
    throw new Error('the reference names no vault: set "vault" of the plugin, or write VAULT/SECRET');
  return { vault, secretName };
}

/**
 * Returns the error code of a response, such as ForbiddenByFirewall, which is more precise than the status. The error's message is not
 * shown, because it names the caller.
 */
function codeOf(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return '';
  }
  const { data } = refused.safeParse(parsed);
  const code = data?.error.innererror?.code ?? data?.error.code ?? '';
  return /^\w{1,64}$/.test(code) ? ` ${code}` : '';
}

/** Returns a function that gets a token from Azure's library, which keeps and renews it. */
function entraTokens(chosen: Options['identity'], scope: string): () => Promise<string> {
  requirePackage('@azure/identity', '4', 'ask Microsoft Entra ID for tokens');
  let credential: ReturnType<typeof credentialOf> | undefined;
  return async () => {
    try {
      credential ??= credentialOf(chosen);
      const given = await (await credential).getToken(scope);
      if (given === null) throw new Error('no token was given');
      return given.token;
    } catch (error) {
      credential = undefined;
      const name = error instanceof Error ? error.name : 'an error';
      throw new Error(
        `Microsoft Entra ID returned no access token (${name}): check "identity" of the plugin`,
        {
          cause: error,
        },
      );
    }
  };
}

async function credentialOf(chosen: Options['identity']) {
  const library = await import('@azure/identity');
  switch (chosen.kind) {
    case 'secret':
      return new library.ClientSecretCredential(chosen.tenant, chosen.client, chosen.secret);
    case 'workload':
      return new library.WorkloadIdentityCredential();
    case 'managed':
      return chosen.client === undefined
        ? new library.ManagedIdentityCredential()
        : new library.ManagedIdentityCredential({ clientId: chosen.client });
    case 'default':
      return new library.DefaultAzureCredential();
  }
}
