import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import keyvTestSuite, { keyvIteratorTests } from '@keyv/test-suite';
import { Keyv } from 'keyv';
import * as vitest from 'vitest';
import { openDatabase } from '../../../core/state/database/index.ts';
import { SqliteKeyv } from '../../../core/state/keyv/sqlite.ts';

/** Keyv with the settings that core/state/stores.ts gives it. */
class KeyvOfStores extends Keyv {
  constructor(options) {
    super({ ...options, useKeyPrefix: false, throwOnErrors: true });
  }
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-keyv-'));
const databases = {
  'in memory': openDatabase('sqlite::memory:'),
  'in a file': openDatabase(`sqlite:${join(folder, 'sluice.db')}`),
};
vitest.afterAll(() => {
  for (const database of Object.values(databases)) database.close();
  rmSync(folder, { recursive: true });
});

for (const [place, database] of Object.entries(databases)) {
  const store = () => new SqliteKeyv(database);
  for (const [settings, KeyvClass] of Object.entries({
    'as it comes': Keyv,
    'as stores.ts sets it': KeyvOfStores,
  })) {
    vitest.describe(`Keyv ${settings}, on a database ${place}`, () => {
      keyvTestSuite(vitest, KeyvClass, store);
      keyvIteratorTests(vitest, KeyvClass, store);
    });
  }
}
