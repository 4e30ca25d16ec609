/** Tokens of Vault: a given one, which is renewed, or one from a login, which is replaced. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { secret, type SecretTools } from 'sluice';
import { VaultRefusal, type AskVault } from './ask.ts';

const mountPath = z
  .string()
  .regex(/^[\w-]+(?:\/[\w-]+)*$/, 'must be the path of an auth method, such as approle');

/** Option `auth`: who asks Vault. */
export const authOption = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('token'), token: secret(z.string().min(1)) }),
  z.strictObject({
    kind: z.literal('approle'),
    roleId: z.string().min(1),
    secretId: secret(z.string().min(1)),
    mount: mountPath.default('approle'),
  }),
  z.strictObject({
    kind: z.literal('kubernetes'),
    role: z.string().min(1),
    /** File with the token of the pod's service account. */
    tokenFile: z.string().min(1).default('/var/run/secrets/kubernetes.io/serviceaccount/token'),
    mount: mountPath.default('kubernetes'),
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

/** A token for requests. */
export interface VaultToken {
  get(signal: AbortSignal): Promise<string>;
  /** Drops a token with which Vault has refused a read, unless the token is still good. Returns true where {@link get} has another one. */
  replaces(token: string, signal: AbortSignal): Promise<boolean>;
}

/** Returns tokens as the option says. */
export function vaultToken(auth: Auth, ask: AskVault, tools: SecretTools): VaultToken {
  return auth.kind === 'token' ? givenToken(auth.token, ask, tools) : new LoginToken(auth, ask, tools);
}

/** Renews a token at half of its time, as long as Vault lets it be renewed. One without an end is left alone. */
function givenToken(token: string, ask: AskVault, { log, onClose }: SecretTools): VaultToken {
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
      if (!isFirst) await ask({ method: 'POST', path: 'auth/token/renew-self', json: {}, token, signal });
      isFirst = false;
      const { data } = lease.parse(await ask({ path: 'auth/token/lookup-self', token, signal }));
      if (data.ttl === 0) return;
      if (data.renewable) later((data.ttl * 1_000) / 2);
      else
        log.warn(
          { seconds: data.ttl },
          'the token of Vault ends, and Vault does not renew it: give another one in time',
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
    get: async () => {
      // The first read may fail; its sentence says more than one about the token.
      if (isFirst && timer === undefined) later(shortestPause);
      return token;
    },
    replaces: async () => false,
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
  readonly #ask: AskVault;
  #token: LoggedIn | undefined;
  #loggingIn: Promise<LoggedIn> | undefined;

  constructor(auth: Exclude<Auth, { kind: 'token' }>, ask: AskVault, { onClose }: SecretTools) {
    this.#auth = auth;
    this.#ask = ask;
    onClose(() => this.#token && this.#revoke(this.#token.value));
  }

  async get(signal: AbortSignal): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.renewAt) return this.#token.value;
    this.#loggingIn ??= this.#logIn(signal).finally(() => {
      this.#loggingIn = undefined;
    });
    this.#token = await this.#loggingIn;
    return this.#token.value;
  }

  /** Vault is asked first, because each login takes one of the uses that a secret id may have. */
  async replaces(token: string, signal: AbortSignal): Promise<boolean> {
    if (this.#token?.value !== token) return true;
    if (await this.#isGood(token, signal)) return false;
    if (this.#token?.value === token) {
      this.#token = undefined;
      // It may be good all the same, where no policy lets it look itself up.
      void this.#revoke(token);
    }
    return true;
  }

  /** True unless Vault says that the token is not good. */
  async #isGood(token: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#ask({ path: 'auth/token/lookup-self', token, signal });
      return true;
    } catch (error) {
      return !(error instanceof VaultRefusal && error.status === 403);
    }
  }

  async #logIn(signal: AbortSignal): Promise<LoggedIn> {
    const auth = this.#auth;
    const json =
      auth.kind === 'approle'
        ? { role_id: auth.roleId, secret_id: auth.secretId }
        : { role: auth.role, jwt: await serviceAccountToken(auth.tokenFile) };
    const answer = await this.#ask({ method: 'POST', path: `auth/${auth.mount}/login`, json, signal });
    if (answer === undefined)
      throw new Error(
        `Vault has no auth method at "auth/${auth.mount}": check "mount", and enable the method`,
      );
    const { client_token: value, lease_duration: seconds } = login.parse(answer).auth;
    return { value, renewAt: seconds === 0 ? Infinity : Date.now() + (seconds * 1_000 * 2) / 3 };
  }

  /** Revokes a token, because each start makes one. */
  async #revoke(token: string): Promise<void> {
    const request = { method: 'POST', path: 'auth/token/revoke-self', json: {}, token } as const;
    await this.#ask({ ...request, signal: AbortSignal.timeout(1_000) }).catch(() => {});
  }
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
