import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { env } from '../settings/environment.ts';
import { hideSecret } from '../log.ts';
import { parseObject } from '../json/parse.ts';
import type { Sealer } from '../sdk/sealer.ts';
import { row, rows, sqlOf } from './database/sql.ts';
import type { Stores } from './stores.ts';

/** Tells a seal from a provider's own blob. The digit is the version of what follows. */
const prefix = 'slc1.';
const algorithm = 'aes-256-gcm';
const keyLength = 32;
const nonceLength = 12;
const tagLength = 16;

/** Longest sealed text that is opened, in characters. A request that holds more is far above what a body may have. */
const longest = 128 * 1024 * 1024;

/** Shortest SLUICE_SECRET: below that it could be guessed. */
const shortestSecret = 32;

/**
 * The sealer of this database; makes its key on first use, one for all processes that start at once. `secret` (default: the variable
 * SLUICE_SECRET) stands in for that key, so that gateways with databases of their own can read each other's seals. Rejects when the
 * secret is shorter than 32 characters or the database fails.
 */
export async function openSealer(
  stores: Stores,
  secret: string | undefined = env('SLUICE_SECRET'),
): Promise<Sealer> {
  const master = secret === undefined ? await storedKey(stores) : givenKey(secret);
  const keys = new Map<string, Buffer>();
  const keyFor = (purpose: string): Buffer => {
    let key = keys.get(purpose);
    if (key === undefined) {
      key = Buffer.from(hkdfSync('sha256', master, '', `sluice seal ${purpose}`, keyLength));
      keys.set(purpose, key);
    }
    return key;
  };
  return {
    seal(purpose, owner, value) {
      const nonce = randomBytes(nonceLength);
      const cipher = createCipheriv(algorithm, keyFor(purpose), nonce, { authTagLength: tagLength });
      cipher.setAAD(bound(purpose, owner));
      const text = cipher.update(JSON.stringify(value), 'utf8');
      return prefix + Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]).toString('base64url');
    },
    open(purpose, owner, text) {
      const bytes = unwrap(text);
      if (bytes === undefined) return undefined;
      const nonce = bytes.subarray(0, nonceLength);
      const decipher = createDecipheriv(algorithm, keyFor(purpose), nonce, { authTagLength: tagLength });
      decipher.setAAD(bound(purpose, owner));
      decipher.setAuthTag(bytes.subarray(-tagLength));
      try {
        const opened = decipher.update(bytes.subarray(nonceLength, -tagLength));
        return parseObject(Buffer.concat([opened, decipher.final()]).toString('utf8'));
      } catch {
        // What was sealed under another key, for another owner, or was changed since.
        return undefined;
      }
    },
    made: (text) => text.startsWith(prefix),
  };
}

/** Returns the associated data of a seal. It is JSON, so that no two pairs of names have the same bytes. */
function bound(purpose: string, owner: string): Buffer {
  return Buffer.from(JSON.stringify([prefix, purpose, owner]));
}

/** The bytes in a seal; undefined for anything else. Only the one spelling that `seal` writes counts: decoders of base64 accept others. */
function unwrap(text: string): Buffer | undefined {
  if (!text.startsWith(prefix) || text.length > longest) return undefined;
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, 'base64url');
  if (bytes.length < nonceLength + tagLength || bytes.toString('base64url') !== encoded) return undefined;
  return bytes;
}

function givenKey(secret: string): Buffer {
  if (secret.length < shortestSecret) {
    throw new Error(
      `SLUICE_SECRET is too short: give it at least ${shortestSecret} random characters, or unset it.`,
    );
  }
  hideSecret(secret);
  return Buffer.from(secret, 'utf8');
}

/** The database's key. Of several processes that start at once the first one's insert wins, and all read that. */
async function storedKey({ database }: Stores): Promise<Buffer> {
  const stored = await sqlOf(database).run(function* () {
    const find = "SELECT value FROM secrets WHERE name = 'seal'";
    const found = yield* row(find);
    if (found !== undefined) return found;
    const fresh = randomBytes(keyLength).toString('hex');
    yield* rows("INSERT INTO secrets (name, value) VALUES ('seal', ?) ON CONFLICT (name) DO NOTHING", fresh);
    return yield* row(find);
  });
  const value = stored?.['value'];
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value)) {
    throw new Error(
      `The key in ${database.url} that seals what clients keep is damaged. Restore the database, or delete the row "seal" of "secrets".`,
    );
  }
  hideSecret(value);
  return Buffer.from(value, 'hex');
}
