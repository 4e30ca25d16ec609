import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maskSecrets } from '../../../core/log.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { Sealer } from '../../../core/sdk/sealer.ts';
import { openSealer } from '../../../core/state/sealer.ts';
import { openStores } from '../../../core/state/stores.ts';
import { temporaryDatabase } from './support.ts';
import { startPostgres, withoutPostgres } from '../../support/postgres.ts';
import { connectionOf } from '../../support/sqlite.ts';
import { tries } from '../../support/tries.ts';

async function sealerOf(url = 'sqlite::memory:', secret?: string): Promise<Sealer> {
  const stores = openStores(url);
  onTestFinished(() => stores.close());
  return openSealer(stores, secret);
}

const value: JsonObject = { summary: 'The user likes tea. 😀', kept: [{ type: 'message' }], v: 1 };

describe('what is sealed', () => {
  test('comes back as it was, for any owner and any value', async () => {
    const sealer = await sealerOf();
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (purpose, owner, wild) => {
          const given = JSON.parse(JSON.stringify(wild)) as JsonObject;
          expect(sealer.open(purpose, owner, sealer.seal(purpose, owner, given))).toEqual(given);
        },
      ),
    );
  });

  test('is text for JSON and headers, different each time, and shows nothing', async () => {
    const sealer = await sealerOf();
    const seals = Array.from({ length: 50 }, () => sealer.seal('compaction', 'key_1', value));
    expect(new Set(seals).size).toBe(50);
    for (const seal of seals) {
      expect(seal).toMatch(/^slc1\.[A-Za-z0-9_-]+$/);
      expect(Buffer.from(seal.slice(5), 'base64url').toString('latin1')).not.toContain('tea');
      expect(sealer.made(seal)).toBe(true);
    }
    expect(sealer.made('gAAAAABo-a-provider’s-own')).toBe(false);
  });

  test('opens after a restart, and in another process on the same database', async () => {
    const url = temporaryDatabase();
    const seal = (await sealerOf(url)).seal('compaction', 'key_1', value);
    expect((await sealerOf(url)).open('compaction', 'key_1', seal)).toEqual(value);
    expect(await elsewhere(url, seal)).toBe(JSON.stringify(value));
  });

  test('opens on another database where both were given one secret', async () => {
    const secret = 'a-secret-of-more-than-thirty-two-characters';
    const seal = (await sealerOf('sqlite::memory:', secret)).seal('compaction', 'key_1', value);
    expect((await sealerOf('sqlite::memory:', secret)).open('compaction', 'key_1', seal)).toEqual(value);
    expect(
      (await sealerOf('sqlite::memory:', `${secret}!`)).open('compaction', 'key_1', seal),
    ).toBeUndefined();
  });

  test('opens for no other owner, no other purpose and on no other database', async () => {
    const sealer = await sealerOf();
    const seal = sealer.seal('compaction', 'key_1', value);
    expect(sealer.open('compaction', 'key_2', seal)).toBeUndefined();
    expect(sealer.open('compaction', '', seal)).toBeUndefined();
    expect(sealer.open('reasoning', 'key_1', seal)).toBeUndefined();
    expect(sealer.open('compactionkey', '_1', seal)).toBeUndefined();
    expect((await sealerOf()).open('compaction', 'key_1', seal)).toBeUndefined();
  });

  test('does not open once a single bit is flipped', async () => {
    const sealer = await sealerOf();
    const seal = sealer.seal('compaction', 'key_1', value);
    const bytes = Buffer.from(seal.slice(5), 'base64url');
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const changed = Buffer.from(bytes);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(sealer.open('compaction', 'key_1', `slc1.${changed.toString('base64url')}`)).toBeUndefined();
      }),
      { numRuns: tries(500) },
    );
  });

  test('does not open once a single character is another, cut off or added, wherever', async () => {
    const sealer = await sealerOf();
    // Lengths that leave spare bits in the last character, which decoders of base64 pass over.
    for (const note of ['', 'a', 'ab']) {
      const seal = sealer.seal('compaction', 'key_1', { note });
      for (let at = 0; at < seal.length; at += 1) {
        const other = seal[at] === 'A' ? 'B' : 'A';
        expect(
          sealer.open('compaction', 'key_1', seal.slice(0, at) + other + seal.slice(at + 1)),
        ).toBeUndefined();
        expect(sealer.open('compaction', 'key_1', seal.slice(0, at))).toBeUndefined();
      }
      const last = seal.at(-1) ?? '';
      for (const one of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.replace(last, ''))
        expect(sealer.open('compaction', 'key_1', seal.slice(0, -1) + one)).toBeUndefined();
      for (const more of ['=', ' ', '\n', 'A'])
        expect(sealer.open('compaction', 'key_1', seal + more)).toBeUndefined();
    }
  });
});

test('texts that nobody sealed do not open, and do no harm', async () => {
  const sealer = await sealerOf();
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.base64String().map((body) => `slc1.${body}`),
      ),
      (made) => {
        expect(sealer.open('compaction', 'key_1', made)).toBeUndefined();
      },
    ),
  );
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`on Postgres ${missing ?? ''}`, () => {
  test('the key is one for gateways that start at once', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const url = await server.createDatabase();
    const sealers = await Promise.all(Array.from({ length: 4 }, () => sealerOf(url)));
    for (const one of sealers) {
      const seal = one.seal('compaction', 'key_1', value);
      for (const other of sealers) expect(other.open('compaction', 'key_1', seal)).toEqual(value);
    }
  });
});

describe('the key', () => {
  test('is one for processes that start at once', async () => {
    const url = temporaryDatabase();
    const instant = Date.now() + 1_500;
    const seals = await Promise.all(Array.from({ length: 4 }, () => elsewhere(url, `make ${instant}`)));
    const sealer = await sealerOf(url);
    for (const seal of seals) expect(sealer.open('compaction', 'key_1', seal)).toEqual({ made: 'elsewhere' });
  });

  test('is masked in the log, as is a given secret', async () => {
    const stores = openStores('sqlite::memory:');
    onTestFinished(() => stores.close());
    await openSealer(stores, undefined);
    const row = connectionOf(stores).prepare('SELECT value FROM secrets').get();
    const stored = String(row?.['value']);
    expect(stored).toMatch(/^[0-9a-f]{64}$/);
    const secret = 'quite-some-words-that-are-never-to-be-shown';
    await openSealer(stores, secret);
    expect(maskSecrets(`a ${stored} b ${secret} c`)).toBe('a … b … c');
  });

  test('that is damaged, or a secret that is too short, is told to the operator', async () => {
    const stores = openStores('sqlite::memory:');
    onTestFinished(() => stores.close());
    await expect(openSealer(stores, 'short')).rejects.toThrow('SLUICE_SECRET is too short');
    await openSealer(stores, undefined);
    connectionOf(stores).exec("UPDATE secrets SET value = 'x'");
    await expect(openSealer(stores, undefined)).rejects.toThrow('is damaged');
  });
});

/** Opens a seal in a process of its own, or seals something at an instant: `make INSTANT`. */
async function elsewhere(url: string, wanted: string): Promise<string> {
  const state = join(import.meta.dirname, '../../../core/state');
  const script = `
    const { openStores } = await import(${JSON.stringify(join(state, 'stores.ts'))});
    const { openSealer } = await import(${JSON.stringify(join(state, 'sealer.ts'))});
    const [url, wanted] = process.argv.slice(-2);
    const [word, instant] = wanted.split(' ');
    if (word === 'make') await new Promise((resolve) => setTimeout(resolve, instant - Date.now()));
    const stores = openStores(url);
    const sealer = await openSealer(stores);
    const said = word === 'make'
      ? sealer.seal('compaction', 'key_1', { made: 'elsewhere' })
      : JSON.stringify(sealer.open('compaction', 'key_1', wanted) ?? null);
    process.stdout.write(said);
    await stores.close();
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, url, wanted]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (out === '') throw new Error(errors);
  return out;
}
