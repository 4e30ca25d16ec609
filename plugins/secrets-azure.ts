/** The config names secrets of Azure Key Vault by reference: `azure:VAULT/SECRET?version=ID#FIELD`. */
import { z } from 'zod';
import {
  defineSecrets,
  requirePackage,
  secret,
  secretUrl,
  type SecretSource,
  type SecretTools,
} from 'sluice';

/** Which identity is shown to Microsoft Entra ID. */
const identity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('secret').describe('which identity it is'),
    tenant: z.string().min(1).describe('id of the tenant'),
    client: z.string().min(1).describe('id of the application, or of a managed identity'),
    secret: secret(z.string().min(1)).describe('secret of the application'),
  }),
  z.strictObject({ kind: z.literal('workload').describe('which identity it is') }),
  z.strictObject({
    kind: z.literal('managed').describe('which identity it is'),
    client: z.string().min(1).optional().describe('id of the application, or of a managed identity'),
  }),
  z.strictObject({ kind: z.literal('default').describe('which identity it is') }),
]);

const options = z.strictObject({
  /** Vault of the secrets whose reference names none. */
  vault: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]$/, 'must be the name of a key vault')
    .optional(),
  /** Who asks: `{ kind: 'secret' }`, `{ kind: 'workload' }`, `{ kind: 'managed' }`, or the default search of Azure's library. Needs `@azure/identity`. */
  identity: identity.default({ kind: 'default' }),
  /** Ending of the addresses of vaults: another cloud has another one. */
  domain: z.enum(['vault.azure.net', 'vault.azure.cn', 'vault.usgovcloudapi.net']).default('vault.azure.net'),
  /** Address in place of that of the vault, such as that of a private proxy. */
  endpoint: secretUrl(z.url({ protocol: /^https?$/ })).optional(),
});

type Options = z.output<typeof options>;

/** See Get Secret: https://learn.microsoft.com/rest/api/keyvault/secrets/get-secret/get-secret */
const apiVersion = '7.4';
const answered = z.object({ value: z.string() });
const refused = z.object({
  error: z.object({ code: z.string(), innererror: z.object({ code: z.string() }).nullish() }),
});

/** Largest answer, in bytes: a secret has at most 25 KB. */
const maxBytes = 256 * 1024;

const advice: Readonly<Record<number, string>> = {
  401: "the token is not one of the vault's tenant: check the identity",
  403: 'give the identity the role Key Vault Secrets User, or the permission "get" of an access policy, and let this network pass the firewall of the vault; a secret may also be disabled or have expired',
  429: 'the vault limits requests: read secrets less often with secrets.refresh',
};

/** Reads secrets by the REST API. */
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
          `Azure Key Vault ${vault} answered ${status}${codeOf(answer.text())}: ${advice[status] ?? 'see https://status.azure.com'}`,
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

/** Codes tell more than the status, such as ForbiddenByFirewall; messages name callers, and are not shown. */
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
      throw new Error(`Microsoft Entra ID gave no access token (${name}): check "identity" of the plugin`, {
        cause: error,
      });
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
