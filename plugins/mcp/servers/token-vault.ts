/** Tokens that replace a configured refresh token: kept for all workers, and over restarts, encrypted by the configured one. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { StoredOAuthTokens } from '@modelcontextprotocol/client';
import { GatewayError, type Stores } from 'sluice';

/** Namespace of the tokens and of their locks. */
const namespace = 'mcp-tokens';

/** Milliseconds for which a replaced token is stored. Each use renews the time. */
const lifetimeMs = 400 * 86_400_000;

/** Milliseconds after which a lock expires, because its worker may have been killed. A job is shorter. */
const lockMs = 30_000;
const jobMs = 25_000;

/** Services of the gateway that a vault uses. */
export type VaultStores = Pick<Stores, 'namespace' | 'add' | 'change'>;

/** Stores the latest tokens of one server. */
export interface TokenVault {
  read(): Promise<StoredOAuthTokens | undefined>;
  write(tokens: StoredOAuthTokens): Promise<void>;
  /**
   * Runs a job while no other worker runs one for the same token. The job must end when `signal` aborts, because the lock expires soon after.
   * Rejects with 503 when another worker holds the lock for too long.
   */
  alone(job: (signal: AbortSignal) => Promise<void>): Promise<void>;
}

/** Opens the vault of a configured refresh token. Another token in the config is another vault. */
export function openTokenVault(stores: VaultStores, refreshToken: string): TokenVault {
  const entries = stores.namespace<string>(namespace);
  const id = createHash('sha256').update(`id ${refreshToken}`).digest('base64url');
  const key = Buffer.from(hkdfSync('sha256', refreshToken, '', 'sluice mcp tokens', 32));
  return {
    async read() {
      const sealed = await entries.get(id);
      return sealed === undefined ? undefined : (JSON.parse(unseal(key, sealed)) as StoredOAuthTokens);
    },
    async write(tokens) {
      await entries.set(id, seal(key, JSON.stringify(tokens)), lifetimeMs);
    },
    async alone(job) {
      const owner = randomUUID();
      const until = performance.now() + lockMs;
      while (!(await stores.add(namespace, `lock ${id}`, owner, lockMs))) {
        if (performance.now() > until)
          throw new GatewayError(
            'upstream_error',
            'Another worker is renewing the access token. Retry later.',
            {
              origin: 'gateway',
              status: 503,
              retryAfter: 1,
            },
          );
        await wait(100);
      }
      try {
        await job(AbortSignal.timeout(jobMs));
      } finally {
        // Expires at once. A lock that another worker has acquired meanwhile stays.
        await stores.change<string>(namespace, `lock ${id}`, (holder) =>
          holder === owner ? { value: holder, ttl: 1 } : undefined,
        );
      }
    },
  };
}

function seal(key: Buffer, text: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
}

function unseal(key: Buffer, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(12, 28));
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
}
