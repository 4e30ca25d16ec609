/** Tokens that replace a configured refresh token: kept for all workers, and over restarts, encrypted by the configured one. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { StoredOAuthTokens } from '@modelcontextprotocol/client';
import type { Stores } from 'sluice';

/** Milliseconds for which a replaced token is kept. Each use writes it anew. */
const lifetimeMs = 400 * 86_400_000;

/** Milliseconds after which the lock of a worker that was killed is free. */
const lockMs = 15_000;

/** Keeps the latest tokens of one server. */
export interface TokenVault {
  read(): Promise<StoredOAuthTokens | undefined>;
  write(tokens: StoredOAuthTokens): Promise<void>;
  /** Runs a job while no other worker runs one for the same token. */
  alone(job: () => Promise<void>): Promise<void>;
}

/** Opens the vault of a configured refresh token. Another token in the config is another vault. */
export function openTokenVault(stores: Pick<Stores, 'namespace' | 'add'>, refreshToken: string): TokenVault {
  const entries = stores.namespace<string>('mcp-tokens');
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
      const until = performance.now() + lockMs;
      while (!(await stores.add('mcp-tokens', `lock ${id}`, 'held', lockMs)))
        if (performance.now() > until) break;
        else await wait(100);
      try {
        await job();
      } finally {
        await entries.delete(`lock ${id}`);
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
