/** The config names secrets of HashiCorp Vault or OpenBao by reference: `vault:MOUNT/PATH?version=N#FIELD`. */
import { z } from 'zod';
import { defineSecrets, secretUrl, type SecretRequest } from 'sluice';
import { vaultSender, type SendToVault } from './sender.ts';
import { authOption, vaultToken } from './token.ts';

const mounted = z.object({
  data: z.object({
    path: z.string(),
    type: z.string(),
    options: z.record(z.string(), z.string()).nullish(),
  }),
});
const fields = z.record(z.string(), z.unknown());
const answered = z.object({ lease_id: z.string().nullish(), data: fields });

/** Mount of a secrets engine, and its version. */
interface Mount {
  readonly mount: string;
  readonly version: 1 | 2;
}

/** Number of mounts that are remembered. */
const mostMounts = 100;

/** Reads secrets of the key/value engines of HashiCorp Vault or OpenBao. */
export default defineSecrets({
  name: 'secrets-vault',
  source: 'vault',
  options: z.strictObject({
    /** URL of Vault: `https://vault.example:8200`. */
    url: secretUrl(z.url({ protocol: /^https?$/ })),
    /** Auth method: `{ kind: 'token' }`, `{ kind: 'approle' }` or `{ kind: 'kubernetes' }`. */
    auth: authOption,
    /** Namespace of Vault Enterprise, HCP Vault or OpenBao. */
    namespace: z.string().min(1).optional(),
    /**
     * Version of the key/value engines. If set, the mount is the first segment of a name. Default: read from Vault, with the path of the
     * mount, as Vault's command line does.
     */
    kv: z.union([z.literal(1), z.literal(2)]).optional(),
  }),
  open({ url, auth, namespace, kv }, tools) {
    const send = vaultSender(url, namespace, tools);
    const token = vaultToken(auth, send, tools);
    const mounts = new Map<string, Mount>();
    const mountOf = async (request: SecretRequest, shown: string): Promise<Mount> => {
      const [first = ''] = request.name.split('/', 1);
      if (kv !== undefined) return { mount: `${first}/`, version: kv };
      for (const [mount, vault] of mounts) if (request.name.startsWith(mount)) return vault;
      const found = await fetchMount(send, request, shown);
      if (mounts.size < mostMounts) mounts.set(found.mount, found);
      return found;
    };
    const read = async (request: SecretRequest, shown: string) => {
      const mount = await mountOf(request, shown);
      return readAt(mount, request, (path) => send({ path, token: shown, signal: request.signal }));
    };
    return {
      read: (request) => token.use(request, (shown) => read(request, shown)),
    };
  },
});

async function fetchMount(send: SendToVault, { name, signal }: SecretRequest, token: string): Promise<Mount> {
  const answer = await send({ path: `sys/internal/ui/mounts/${encoded(name)}`, token, signal });
  const { path, type, options } = mounted.parse(answer).data;
  if (type !== 'kv' && type !== 'generic')
    throw new Error(
      `"${path}" is an engine of type ${type.slice(0, 50)}: only secrets of key/value engines can be read`,
    );
  return { mount: path, version: options?.['version'] === '2' ? 2 : 1 };
}

async function readAt(
  { mount, version: engine }: Mount,
  { name, version }: SecretRequest,
  get: (path: string) => Promise<unknown>,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const rest = encoded(name.slice(mount.length));
  if (engine === 1) {
    if (version !== undefined)
      throw new Error('a key/value engine of version 1 has no versions: remove ?version=');
    return fieldsOf(await get(`${mount}${rest}`));
  }
  if (version !== undefined && !/^\d{1,9}$/.test(version))
    throw new Error('the version of a secret of Vault is a number');
  const query = version === undefined ? '' : `?version=${version}`;
  const found = fieldsOf(await get(`${mount}data/${rest}${query}`));
  // A version that was deleted has no data.
  return found?.['data'] === null ? undefined : found && fields.parse(found['data']);
}

function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> | undefined {
  if (answer === undefined) return undefined;
  const { lease_id: lease, data } = answered.parse(answer);
  // Each read would make another one, and none would be renewed.
  if (lease)
    throw new Error('it is a dynamic secret, with a lease: only secrets of key/value engines can be read');
  return data;
}

function encoded(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}
