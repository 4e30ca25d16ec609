/** Signing keys for workloads on Oracle Cloud Infrastructure: resource principals, instance principals and workload identities. */
import { generateKeyPair, X509Certificate, type KeyPairKeyObjectResult } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { promisify } from 'node:util';
import { env, parseObject, type HttpClient } from 'sluice';
import { ofToken, privateKeyOf, readText, type OciSigner } from './keys.ts';
import { ociHeaders } from './signature.ts';

/**
 * Returns the signer of Functions and container instances, from their environment. Each variable holds the value itself, or the path of a file that is
 * replaced before it ends.
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/common/lib/auth/resource-principal-authentication-details-provider.ts
 */
export async function ofResource(): Promise<OciSigner> {
  const prefix = 'OCI_RESOURCE_PRINCIPAL_';
  const variable = (name: string): string => {
    const value = env(prefix + name) ?? '';
    if (value === '') throw new Error(`${prefix}${name} is not set`);
    return value;
  };
  const version = variable('VERSION');
  if (version !== '2.2') throw new Error(`${prefix}VERSION is ${version}, but only 2.2 is supported`);
  const held = async (name: string, value = variable(name)): Promise<string> =>
    isAbsolute(value) ? readText(prefix + name, value) : value;
  const phrase = env(`${prefix}PRIVATE_PEM_PASSPHRASE`);
  const passphrase = phrase === undefined ? undefined : (await held('PRIVATE_PEM_PASSPHRASE', phrase)).trim();
  return ofToken(await held('RPST'), privateKeyOf(await held('PRIVATE_PEM'), passphrase));
}

const metadataService = 'http://169.254.169.254/opc/v2';

/**
 * Returns the certificate of an instance, changed for a token that is bound to a key made for it.
 * https://docs.oracle.com/en-us/iaas/Content/Identity/Tasks/callingservicesfrominstances.htm
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/common/lib/auth/X509-federation-client.ts
 */
export async function ofInstance(
  { federationUrl }: { readonly federationUrl?: string | undefined },
  http: HttpClient,
): Promise<OciSigner> {
  const base = (env('OCI_METADATA_BASE_URL') ?? metadataService).replace(/\/+$/, '');
  const read = async (path: string): Promise<string> => {
    const reading = http.read({ url: `${base}/${path}`, headers: { authorization: 'Bearer Oracle' } });
    return (await reading.catch(failing('the metadata service'))).toString();
  };
  const [leaf, key, intermediate] = await Promise.all(
    ['cert', 'key', 'intermediate'].map((name) => read(`identity/${name}.pem`)),
  );
  const certificate = new X509Certificate(leaf ?? '');
  const tenancy = /^OU=(?:opc-tenant|opc-identity):(\S+)$/m.exec(certificate.subject)?.[1];
  if (tenancy === undefined) throw new Error('the certificate of the instance has no tenancy');
  const origin = federationUrl ?? authOf(parseObject(await read('instance/regionInfo')) ?? {});
  const session = await sessionKey();
  const url = `${origin.replace(/\/+$/, '')}/v1/x509`;
  const body = JSON.stringify({
    certificate: bare(leaf ?? ''),
    purpose: 'DEFAULT',
    publicKey: publicPart(session),
    intermediateCertificates: [bare(intermediate ?? '')],
  });
  const keyId = `${tenancy}/fed-x509/${certificate.fingerprint}`;
  const headers = await ociHeaders({ url, body }, { keyId, privateKey: privateKeyOf(key ?? '', undefined) });
  const answer = await http.read({ url, headers, body }).catch(failing('the federation service'));
  const { token } = parseObject(answer.toString()) ?? {};
  if (typeof token !== 'string') throw new Error('the federation service returned no token');
  return ofToken(token, session.privateKey);
}

/** Default port at which a cluster exchanges tokens of service accounts. */
const okePort = '12250';

/**
 * Returns the token of a pod's service account, changed by its cluster for one that is bound to a key made for it. The cluster shows a certificate
 * of its own authority.
 * https://docs.oracle.com/en-us/iaas/Content/ContEng/Tasks/contenggrantingworkloadaccesstoresources.htm
 * https://github.com/oracle/oci-typescript-sdk/blob/master/lib/common/lib/auth/X509-federation-client-for-oke-workload-identity.ts
 */
export async function ofWorkload(
  { tokenFile }: { readonly tokenFile: string },
  http: HttpClient,
): Promise<OciSigner> {
  const host = env('KUBERNETES_SERVICE_HOST') ?? '';
  if (host === '') throw new Error('KUBERNETES_SERVICE_HOST is not set');
  const shown = (await readText('the token of the service account', tokenFile)).trim();
  const session = await sessionKey();
  const answer = await http
    .read({
      url: `https://${host.includes(':') ? `[${host}]` : host}:${env('KUBERNETES_SERVICE_PORT_PROXYMUX') ?? okePort}/resourcePrincipalSessionTokens`,
      headers: { authorization: `Bearer ${shown}`, 'content-type': 'application/json' },
      body: JSON.stringify({ podKey: publicPart(session) }),
    })
    .catch(failing('the cluster'));
  const { token } = parseObject(Buffer.from(answer.toString(), 'base64').toString()) ?? {};
  // The token comes after the prefix `ST$`, with which ids of keys begin too.
  if (typeof token !== 'string' || !token.startsWith('ST$')) throw new Error('the cluster returned no token');
  return ofToken(token.slice('ST$'.length), session.privateKey);
}

function sessionKey(): Promise<KeyPairKeyObjectResult> {
  return promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
}

function publicPart({ publicKey }: KeyPairKeyObjectResult): string {
  return bare(publicKey.export({ type: 'spki', format: 'pem' }).toString());
}

/** https://docs.oracle.com/en-us/iaas/Content/API/Concepts/sdk_adding_new_region_endpoints.htm */
function authOf({ regionIdentifier, realmDomainComponent }: Readonly<Record<string, unknown>>): string {
  if (typeof regionIdentifier !== 'string' || typeof realmDomainComponent !== 'string')
    throw new Error('the metadata service returned no region');
  return `https://auth.${regionIdentifier}.${realmDomainComponent}`;
}

function failing(who: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${who} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  };
}

/** Returns the content between the first and the last line of a PEM, in one line. */
function bare(pem: string): string {
  return pem.replaceAll(/-----(?:BEGIN|END) [A-Z ]+-----|\s/g, '');
}
