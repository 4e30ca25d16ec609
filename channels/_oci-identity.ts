import { createPrivateKey, generateKeyPair, X509Certificate, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { env, type HttpClient } from 'sluice';
import { isObject, parseObject } from 'sluice/internal';
import { ociHeaders, type OciKey } from './_oci-signature.ts';
import { CredentialsError } from './_renewed.ts';

/** Which identity signs requests to Oracle Cloud Infrastructure, as an option of a channel. */
export const ociIdentity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('profile'),
    file: z.string().min(1).optional().describe('default: OCI_CONFIG_FILE, or ~/.oci/config'),
    name: z.string().min(1).default('DEFAULT'),
    passphrase: z.string().min(1).optional(),
  }),
  z.strictObject({
    kind: z.literal('key'),
    tenancy: z.string().startsWith('ocid1.tenancy.'),
    user: z.string().startsWith('ocid1.user.'),
    fingerprint: z.string().regex(/^[\da-f]{2}(:[\da-f]{2})+$/i, 'must be pairs of hexadecimal digits'),
    key: z.string().min(1).describe('the private key: a file, or the text of its PEM'),
    passphrase: z.string().min(1).optional(),
  }),
  z.strictObject({ kind: z.literal('resource') }),
  z.strictObject({
    kind: z.literal('instance'),
    federationUrl: z
      .url()
      .optional()
      .describe('where its certificate is changed for tokens; default: https://auth.REGION.oraclecloud.com'),
  }),
]);

/** See {@link ociIdentity}. */
export type OciIdentity = z.output<typeof ociIdentity>;

/** A key that signs until it ends; `expires` is in milliseconds since 1970, Infinity for one that does not. */
export interface OciSigner extends OciKey {
  readonly expires: number;
}

type Kind<Name extends OciIdentity['kind']> = Extract<OciIdentity, { readonly kind: Name }>;

const advice: Readonly<Record<OciIdentity['kind'], string>> = {
  profile:
    'Give user, tenancy, fingerprint and key_file there; for a session token run "oci session authenticate". OCI_CONFIG_FILE names another file.',
  key: 'Check tenancy, user, fingerprint, and that key is an RSA key in PEM, or a file with one.',
  resource:
    'Set OCI_RESOURCE_PRINCIPAL_VERSION (2.2), OCI_RESOURCE_PRINCIPAL_RPST and OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM, as Functions and containers of Oracle have them.',
  instance:
    'Run on an instance of Oracle Cloud that belongs to a dynamic group which may use Generative AI; elsewhere give another identity.',
};

/**
 * Finds what signs. Rejects with a sentence for the operator. `http` reaches the metadata service of an instance, at OCI_METADATA_BASE_URL
 * where that is set, and the service that changes its certificate for tokens.
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
  // What a profile does not say, the one of this name says for all.
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

function ofToken(text: string, privateKey: KeyObject): OciSigner {
  const token = text.trim();
  const { exp } = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) ?? {};
  if (typeof exp !== 'number') throw new Error('its session token is none');
  const expires = exp * 1000;
  if (expires <= Date.now())
    throw new Error(`its session token has ended, ${new Date(expires).toISOString()}`);
  return { keyId: `ST$${token}`, privateKey, expires };
}

/**
 * What Functions and container instances find in their environment: each variable holds the thing itself, or the path of a file that is
 * replaced before it ends.
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/common/lib/auth/resource-principal-authentication-details-provider.ts
 */
async function ofResource(): Promise<OciSigner> {
  const prefix = 'OCI_RESOURCE_PRINCIPAL_';
  const said = (name: string): string => {
    const value = env(prefix + name) ?? '';
    if (value === '') throw new Error(`${prefix}${name} is not set`);
    return value;
  };
  const version = said('VERSION');
  if (version !== '2.2') throw new Error(`${prefix}VERSION is ${version}, and only 2.2 is known here`);
  const held = async (name: string, value = said(name)): Promise<string> =>
    isAbsolute(value) ? readText(prefix + name, value) : value;
  const phrase = env(`${prefix}PRIVATE_PEM_PASSPHRASE`);
  const passphrase = phrase === undefined ? undefined : (await held('PRIVATE_PEM_PASSPHRASE', phrase)).trim();
  return ofToken(await held('RPST'), privateKeyOf(await held('PRIVATE_PEM'), passphrase));
}

const metadataService = 'http://169.254.169.254/opc/v2';

/**
 * The certificate of an instance, changed for a token that is bound to a key made for it.
 * https://docs.oracle.com/en-us/iaas/Content/Identity/Tasks/callingservicesfrominstances.htm
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/common/lib/auth/X509-federation-client.ts
 */
async function ofInstance({ federationUrl }: Kind<'instance'>, http: HttpClient): Promise<OciSigner> {
  const base = (env('OCI_METADATA_BASE_URL') ?? metadataService).replace(/\/+$/, '');
  const read = async (path: string): Promise<string> => {
    const asked = http.read({ url: `${base}/${path}`, headers: { authorization: 'Bearer Oracle' } });
    return (await asked.catch(failing('the metadata service'))).toString();
  };
  const [leaf, key, intermediate] = await Promise.all(
    ['cert', 'key', 'intermediate'].map((name) => read(`identity/${name}.pem`)),
  );
  const certificate = new X509Certificate(leaf ?? '');
  const tenancy = /^OU=(?:opc-tenant|opc-identity):(\S+)$/m.exec(certificate.subject)?.[1];
  if (tenancy === undefined) throw new Error('the certificate of the instance names no tenancy');
  const place = federationUrl ?? authOf(parseObject(await read('instance/regionInfo')) ?? {});
  const session = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const url = `${place.replace(/\/+$/, '')}/v1/x509`;
  const body = JSON.stringify({
    certificate: bare(leaf ?? ''),
    purpose: 'DEFAULT',
    publicKey: bare(session.publicKey.export({ type: 'spki', format: 'pem' }).toString()),
    intermediateCertificates: [bare(intermediate ?? '')],
  });
  const keyId = `${tenancy}/fed-x509/${certificate.fingerprint}`;
  const headers = await ociHeaders({ url, body }, { keyId, privateKey: privateKeyOf(key ?? '', undefined) });
  const answer = await http.read({ url, headers, body }).catch(failing('the federation service'));
  const { token } = parseObject(answer.toString()) ?? {};
  if (typeof token !== 'string') throw new Error('the federation service gave no token');
  return ofToken(token, session.privateKey);
}

/** https://docs.oracle.com/en-us/iaas/Content/API/Concepts/sdk_adding_new_region_endpoints.htm */
function authOf({ regionIdentifier, realmDomainComponent }: Readonly<Record<string, unknown>>): string {
  if (typeof regionIdentifier !== 'string' || typeof realmDomainComponent !== 'string')
    throw new Error('the metadata service tells no region');
  return `https://auth.${regionIdentifier}.${realmDomainComponent}`;
}

function failing(who: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${who} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  };
}

/** What stands between the first and the last line of a PEM, in one line. */
function bare(pem: string): string {
  return pem.replaceAll(/-----(?:BEGIN|END) [A-Z ]+-----|\s/g, '');
}

function isPem(text: string): boolean {
  return text.includes('-----BEGIN ');
}

/** What OpenSSL says of a key that it cannot read names neither the key nor its passphrase. */
function privateKeyOf(pem: string, passphrase: string | undefined): KeyObject {
  const key = createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) });
  if (key.asymmetricKeyType !== 'rsa') throw new Error(`its key is of the type ${key.asymmetricKeyType}`);
  return key;
}

function atHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

async function readText(what: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = isObject(error) ? error['code'] : undefined;
    throw new Error(`${what} cannot be read (${path}: ${String(code ?? error)})`, { cause: error });
  }
}

/** An INI file: sections of `name = value`, and lines that begin with `#` or `;` for people. */
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
