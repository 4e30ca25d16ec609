/** Finds the key that signs requests to Oracle Cloud Infrastructure, and defines the channel option that selects the identity. */
import type { KeyObject } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { env, secret, secretUrl, type HttpClient } from 'sluice';
import { CredentialsError } from 'sluice/channel-kit';
import { ofToken, privateKeyOf, readText, type OciSigner } from './keys.ts';
import { ofInstance, ofResource, ofWorkload } from './principals.ts';

/** Which identity signs requests to Oracle Cloud Infrastructure, as an option of a channel. */
export const ociIdentity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('profile').describe('kind of identity that signs requests'),
    file: z
      .string()
      .min(1)
      .optional()
      .describe('path of the configuration file. Default: `OCI_CONFIG_FILE`, or `~/.oci/config`'),
    name: z.string().min(1).default('DEFAULT').describe('name of the profile'),
    passphrase: secret(z.string().min(1)).optional().describe('passphrase of the private key'),
  }),
  z.strictObject({
    kind: z.literal('key').describe('kind of identity that signs requests'),
    tenancy: z.string().startsWith('ocid1.tenancy.').describe('OCID of the tenancy'),
    user: z.string().startsWith('ocid1.user.').describe('OCID of the user'),
    fingerprint: z
      .string()
      .regex(/^[\da-f]{2}(:[\da-f]{2})+$/i, 'must be pairs of hexadecimal digits')
      .describe('fingerprint of the public key'),
    key: secret(z.string().min(1)).describe('private key: the path of a file, or its PEM text'),
    passphrase: secret(z.string().min(1)).optional().describe('passphrase of the private key'),
  }),
  z.strictObject({ kind: z.literal('resource').describe('kind of identity that signs requests') }),
  z.strictObject({
    kind: z.literal('instance').describe('kind of identity that signs requests'),
    federationUrl: secretUrl(z.url())
      .optional()
      .describe(
        'URL that exchanges the certificate of the instance for tokens. Default: https://auth.REGION.oraclecloud.com',
      ),
  }),
  z.strictObject({
    kind: z.literal('workload').describe('kind of identity that signs requests'),
    tokenFile: z
      .string()
      .min(1)
      .default('/var/run/secrets/kubernetes.io/serviceaccount/token')
      .describe("file with the token of the pod's service account"),
  }),
]);

/** See {@link ociIdentity}. */
export type OciIdentity = z.output<typeof ociIdentity>;

type Kind<Name extends OciIdentity['kind']> = Extract<OciIdentity, { readonly kind: Name }>;

const advice: Readonly<Record<OciIdentity['kind'], string>> = {
  profile:
    'Give user, tenancy, fingerprint and key_file there; for a session token run "oci session authenticate". OCI_CONFIG_FILE names another file.',
  key: 'Check tenancy, user, fingerprint, and that key is an RSA key in PEM, or a file with one.',
  resource:
    'Set OCI_RESOURCE_PRINCIPAL_VERSION (2.2), OCI_RESOURCE_PRINCIPAL_RPST and OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM, as Functions and containers of Oracle have them.',
  instance:
    'Run on an instance of Oracle Cloud that belongs to a dynamic group which may use Generative AI. Elsewhere, set another identity.',
  workload:
    'Run in a pod of an enhanced OKE cluster whose service account a policy lets use generative-ai-family, with NODE_EXTRA_CA_CERTS=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt in its environment.',
};

/**
 * Returns a function that finds the key. It rejects with a message for the operator. `http` reaches the metadata service of an instance, at
 * OCI_METADATA_BASE_URL where that is set, and the service that changes its certificate for tokens.
 */
export function ociSigners(identity: OciIdentity, http: HttpClient): () => Promise<OciSigner> {
  return async () => {
    try {
      return await find(identity, http);
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
      throw new CredentialsError(
        `OCI credentials could not be had from ${nameOf(identity)}: ${reason}. ${advice[identity.kind]}`,
        { link: identity.kind },
      );
    }
  };
}

function nameOf(identity: OciIdentity): string {
  switch (identity.kind) {
    case 'profile':
      return `the profile ${identity.name} of ${configFile(identity)}`;
    case 'key':
      return 'the key in the config';
    case 'resource':
      return 'the resource principal';
    case 'instance':
      return 'the instance principal';
    case 'workload':
      return 'the workload identity of the pod';
  }
}

async function find(identity: OciIdentity, http: HttpClient): Promise<OciSigner> {
  switch (identity.kind) {
    case 'profile':
      return ofProfile(identity);
    case 'key': {
      const { tenancy, user, fingerprint, key, passphrase } = identity;
      const pem = isPem(key) ? key : await readText('key', key);
      return ofUser({ tenancy, user, fingerprint }, privateKeyOf(pem, passphrase));
    }
    case 'resource':
      return ofResource();
    case 'instance':
      return ofInstance(identity, http);
    case 'workload':
      return ofWorkload(identity, http);
  }
}

function configFile({ file }: Kind<'profile'>): string {
  return atHome(file ?? env('OCI_CONFIG_FILE') ?? '~/.oci/config');
}

/** https://docs.oracle.com/en-us/iaas/Content/API/Concepts/sdkconfig.htm */
async function ofProfile(identity: Kind<'profile'>): Promise<OciSigner> {
  const profiles = profilesOf(await readText('the file', configFile(identity)));
  const own = profiles.get(identity.name);
  if (own === undefined) throw new Error('there is no such profile');
  // Values that a profile lacks are taken from the profile of this name.
  const entries = { ...profiles.get('DEFAULT'), ...own };
  const entry = (name: string): string => {
    const value = entries[name] ?? '';
    if (value === '') throw new Error(`it has no ${name}`);
    return value;
  };
  const pem = entries['key_content'] ?? (await readText('key_file', atHome(entry('key_file'))));
  const key = privateKeyOf(pem, identity.passphrase ?? entries['pass_phrase']);
  if (entries['security_token_file'] !== undefined)
    return ofToken(await readText('security_token_file', atHome(entry('security_token_file'))), key);
  return ofUser({ tenancy: entry('tenancy'), user: entry('user'), fingerprint: entry('fingerprint') }, key);
}

function ofUser(
  { tenancy, user, fingerprint }: Pick<Kind<'key'>, 'tenancy' | 'user' | 'fingerprint'>,
  privateKey: KeyObject,
): OciSigner {
  return { keyId: `${tenancy}/${user}/${fingerprint}`, privateKey, expires: Infinity };
}

function isPem(text: string): boolean {
  return text.includes('-----BEGIN ');
}

function atHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

/** Parses an INI file: sections of `name = value`, with comments that begin with `#` or `;`. */
function profilesOf(text: string): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const profiles = new Map<string, Record<string, string>>();
  let entries: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[([^\]]+)\]/.exec(line)?.[1];
    if (section !== undefined) profiles.set(section.trim(), (entries = {}));
    const [, name, value] = /^\s*([^#;=[\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) entries[name] = value;
  }
  return profiles;
}
