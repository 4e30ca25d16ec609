/** Tokens of Vault: a given one, which is renewed, or one from a login, which is replaced. */
import { readFile } from 'node:fs/promises';
import { setTimeout as pass } from 'node:timers/promises';
import { z } from 'zod';
import { secret, type SecretRequest, type SecretTools } from 'sluice';
import { VaultRefusal, type SendToVault } from './sender.ts';

const mountPath = z
  .string()
  .regex(/^[\w-]+(?:\/[\w-]+)*$/, 'must be the path of an auth method, such as approle');

/** Option `auth`: who asks Vault. */
export const authOption = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('token').describe('auth method'),
    token: secret(z.string().min(1)).describe('Vault token'),
  }),
  z.strictObject({
    kind: z.literal('approle').describe('auth method'),
    roleId: z.string().min(1).describe('id of the role'),
    secretId: secret(z.string().min(1)).describe('secret id of the role'),
    mount: mountPath.default('approle').describe('path where the auth method is mounted'),
  }),
  z.strictObject({
    kind: z.literal('kubernetes').describe('auth method'),
    role: z.string().min(1).describe('name of the role'),
    /** File with the token of the pod's service account. */
    tokenFile: z.string().min(1).default('/var/run/secrets/kubernetes.io/serviceaccount/token'),
    mount: mountPath.default('kubernetes').describe('path where the auth method is mounted'),
  }),
]);

type Auth = z.output<typeof authOption>;

const login = z.object({
  auth: z.object({ client_token: z.string().min(1), lease_duration: z.number().nonnegative() }),
});
const lease = z.object({ data: z.object({ ttl: z.number(), renewable: z.boolean() }) });

/** Shortest pause between two renewals, in milliseconds. Timers take no more than about 24 days. */
const shortestPause = 1_000;
const longestPause = 24 * 60 * 60_000;

/** Time for which a refusal of a secret is not taken for the end of a token, after a new token was refused as well, in milliseconds. */
const forbiddenFor = 60 * 60_000;

/** Maximum number of refused secrets that are remembered. */
const maxForbidden = 1_000;

/** Maximum wait in milliseconds for a login that runs while the gateway stops. */
const lastLogin = 1_000;

/** A token for requests. */
export interface VaultToken {
  /** Runs a read of a secret with a token, and once more with another one where the token has ended. */
  use<Result>(
    request: Pick<SecretRequest, 'name' | 'signal'>,
    read: (token: string) => Promise<Result>,
  ): Promise<Result>;
}

/** Returns tokens as the option says. */
export function vaultToken(auth: Auth, send: SendToVault, tools: SecretTools): VaultToken {
  return auth.kind === 'token' ? givenToken(auth.token, send, tools) : new LoginToken(auth, send, tools);
}

/** Renews a token at half of its lifetime, as long as Vault allows it. Tokens without an expiry are not renewed. */
function givenToken(token: string, send: SendToVault, { log, onClose }: SecretTools): VaultToken {
  let timer: NodeJS.Timeout | undefined;
  let isOpen = true;
  let isFirst = true;
  const later = (milliseconds: number): void => {
    if (!isOpen) return;
    const pause = Math.min(Math.max(milliseconds, shortestPause), longestPause);
    timer = setTimeout(() => void renew(), pause).unref();
  };
  const renew = async (): Promise<void> => {
    try {
      const signal = AbortSignal.timeout(10_000);
      if (!isFirst) await send({ method: 'POST', path: 'auth/token/renew-self', json: {}, token, signal });
      isFirst = false;
      const { data } = lease.parse(await send({ path: 'auth/token/lookup-self', token, signal }));
      if (data.ttl === 0) return;
      if (data.renewable) later((data.ttl * 1_000) / 2);
      else
        log.warn(
          { seconds: data.ttl },
          'the Vault token expires and cannot be renewed: set another one in time',
        );
    } catch (error) {
      log.warn({ error }, 'the token of Vault could not be renewed');
      later(60_000);
    }
  };
  onClose(() => {
    isOpen = false;
    clearTimeout(timer);
  });
  return {
    use: (_, read) => {
      // The first read may fail; its sentence says more than one about the token.
      if (isFirst && timer === undefined) later(shortestPause);
      return read(token);
    },
  };
}

/** A token of a login, and when the next one is to take its place, in milliseconds since 1970. */
interface LoggedIn {
  readonly value: string;
  readonly renewAt: number;
}

/** Logs in when the first token is needed, and again when one has used up two thirds of its time, or is refused. */
class LoginToken implements VaultToken {
  readonly #auth: Exclude<Auth, { kind: 'token' }>;
  readonly #send: SendToVault;
  #token: LoggedIn | undefined;
  #loggingIn: Promise<LoggedIn> | undefined;
  /** Times at which a new token was refused a secret and could not look itself up, by names of secrets. */
  readonly #forbidden = new Map<string, number>();

  constructor(auth: Exclude<Auth, { kind: 'token' }>, send: SendToVault, { onClose }: SecretTools) {
    this.#auth = auth;
    this.#send = send;
    onClose(() => this.#close());
  }

  async use<Result>(
    { name, signal }: Pick<SecretRequest, 'name' | 'signal'>,
    read: (token: string) => Promise<Result>,
  ): Promise<Result> {
    const first = await this.#get(signal);
    try {
      return await read(first);
    } catch (error) {
      if (!isForbidden(error) || !(await this.#replaces(first, name, signal))) throw error;
    }
    const second = await this.#get(signal);
    try {
      return await read(second);
    } catch (error) {
      if (isForbidden(error) && !(await this.#isGood(second, signal))) this.#noteForbidden(name);
      throw error;
    }
  }

  async #get(signal: AbortSignal): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.renewAt) return this.#token.value;
    this.#loggingIn ??= this.#logIn(signal).finally(() => {
      this.#loggingIn = undefined;
    });
    this.#token = await this.#loggingIn;
    return this.#token.value;
  }

  /**
   * Drops a token with which Vault has refused a read, unless the token is still good. Returns true where {@link #get} has another one. Vault
   * answers 403 for a missing policy and for a token that has ended, and is asked first, because each login takes one of the uses that a secret
   * id may have.
   */
  async #replaces(token: string, name: string, signal: AbortSignal): Promise<boolean> {
    if (this.#token?.value !== token) return true;
    if (Date.now() - (this.#forbidden.get(name) ?? -Infinity) < forbiddenFor) return false;
    if (await this.#isGood(token, signal)) return false;
    if (this.#token?.value === token) {
      this.#token = undefined;
      // Revoked, because it may still be valid where no policy allows it to look itself up.
      void this.#revoke(token);
    }
    return true;
  }

  /** Without a policy for it a token that is good may not look itself up, so that each refusal would cost a login. */
  #noteForbidden(name: string): void {
    if (this.#forbidden.size >= maxForbidden) this.#forbidden.clear();
    this.#forbidden.set(name, Date.now());
  }

  /** Returns true unless Vault says that the token is not good. */
  async #isGood(token: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#send({ path: 'auth/token/lookup-self', token, signal });
      return true;
    } catch (error) {
      return !isForbidden(error);
    }
  }

  async #logIn(signal: AbortSignal): Promise<LoggedIn> {
    const auth = this.#auth;
    const json =
      auth.kind === 'approle'
        ? { role_id: auth.roleId, secret_id: auth.secretId }
        : { role: auth.role, jwt: await serviceAccountToken(auth.tokenFile) };
    const answer = await this.#send({ method: 'POST', path: `auth/${auth.mount}/login`, json, signal });
    if (answer === undefined)
      throw new Error(
        `Vault has no auth method at "auth/${auth.mount}": check "mount", and enable the method`,
      );
    const { client_token: value, lease_duration: seconds } = login.parse(answer).auth;
    return { value, renewAt: seconds === 0 ? Infinity : Date.now() + (seconds * 1_000 * 2) / 3 };
  }

  /** Revokes the token, and that of a login which still runs. */
  async #close(): Promise<void> {
    const running = this.#loggingIn?.catch(() => undefined);
    const next = running && (await Promise.race([running, pass(lastLogin, undefined, { ref: false })]));
    const tokens = new Set([this.#token?.value, next?.value]);
    await Promise.all([...tokens].map((token) => token && this.#revoke(token)));
  }

  /** Revokes a token, because each start makes one. */
  async #revoke(token: string): Promise<void> {
    const request = { method: 'POST', path: 'auth/token/revoke-self', json: {}, token } as const;
    await this.#send({ ...request, signal: AbortSignal.timeout(1_000) }).catch(() => {});
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof VaultRefusal && error.status === 403;
}

async function serviceAccountToken(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      `the file ${file} with the token of the service account cannot be read (${error.code ?? error.name})`,
      {
        cause: error.code,
      },
    );
  });
  return text.trim();
}
