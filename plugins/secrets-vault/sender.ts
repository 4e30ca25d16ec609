/** Sends requests to Vault, and says what its refusals mean. */
import type { SecretTools } from 'sluice';

/** A request to the HTTP API of Vault, below `/v1/`. */
export interface VaultRequest {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly json?: Record<string, string>;
  readonly token?: string;
  readonly signal: AbortSignal;
}

/** Vault has refused a request. */
export class VaultRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'VaultRefusal';
    this.status = status;
  }
}

/** Returns the body of the answer; undefined for 404 and for an answer without a body. Rejects with a sentence for the operator. */
export type SendToVault = (request: VaultRequest) => Promise<unknown>;

/** Largest answer, in bytes: a secret of Vault has at most 1 MiB by default. */
const maxBytes = 2 * 1024 * 1024;

const advice: Readonly<Record<number, string>> = {
  400: 'check the options of the auth method: role, secret id and mount',
  403: 'let a policy of the token read this path (with /data/ behind the mount of a KV version 2), and check the token and the namespace',
  429: 'Vault limits requests: raise its quota, or read secrets less often with secrets.refresh',
  472: 'it is a disaster-recovery standby: set the address of the active cluster',
  473: 'it is a standby: set the address of the active node or of a load balancer',
  503: 'unseal it, or end its maintenance',
};

/** Returns a function that sends requests to one Vault. */
export function vaultSender(
  address: string,
  namespace: string | undefined,
  { http }: Pick<SecretTools, 'http'>,
): SendToVault {
  const origin = address.replace(/\/+$/, '');
  const { host } = new URL(address);
  return async ({ path, token, method = 'GET', json, signal }) => {
    const answer = await http.ask({
      url: `${origin}/v1/${path}`,
      method,
      headers: {
        'x-vault-request': 'true',
        ...(token === undefined ? {} : { 'x-vault-token': token }),
        ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }),
      },
      ...(json === undefined ? {} : { json }),
      limit: maxBytes,
      timeout: 60_000,
      signal,
    });
    const { status } = answer;
    if (status === 404 || status === 204) return undefined;
    if (status >= 300 && status < 400)
      throw new VaultRefusal(
        status,
        `Vault at ${host} redirects to another node: set the address of the active node or of a load balancer`,
      );
    if (status !== 200) {
      const errors = errorsOf(answer.text());
      const whatToDo = advice[status] ?? 'see the log of Vault';
      throw new VaultRefusal(status, `Vault at ${host} returned status ${status}${errors}: ${whatToDo}`);
    }
    try {
      return answer.json();
    } catch {
      throw new Error(`Vault at ${host} did not return JSON: check the address`);
    }
  };
}

/** Returns the errors of a response such as `{"errors": ["permission denied"]}`. */
function errorsOf(text: string): string {
  try {
    const { errors } = JSON.parse(text) as { readonly errors?: unknown };
    const all = Array.isArray(errors) ? errors.filter((one) => typeof one === 'string').join('; ') : '';
    return all === '' ? '' : ` (${all.slice(0, 200)})`;
  } catch {
    return '';
  }
}
