/**
 * A second process on the same database, for the tests that start one: `node other-process.ts URL COMMAND [ARGUMENT]`.
 * It prints one line per thing done, so that the test knows what must be there afterwards.
 */
import { setTimeout } from 'node:timers/promises';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { openStores } from '../../../core/state/stores.ts';

const [url = '', command = '', argument = ''] = process.argv.slice(2);
const print = (line: string) => process.stdout.write(`${line}\n`);

const commands: Record<string, () => Promise<void>> = {
  /** Writes pairs that belong together, one pair per transaction, until it is killed. */
  async 'write-pairs'() {
    const pairs = openStores(url).namespace<number>('pairs');
    for (let number = 0; ; number += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await pairs.setMany([
        { key: `left-${number}`, value: number },
        { key: `right-${number}`, value: number },
      ]);
      print(String(number));
    }
  },

  async 'create-key'() {
    const stores = openStores(url);
    const { value } = await createApiKeys(stores).create({ name: argument });
    await stores.close();
    print(value);
  },

  async 'revoke-key'() {
    const stores = openStores(url);
    await createApiKeys(stores).revoke(argument);
    await stores.close();
    print('revoked');
  },

  /** Opens the database at the same instant as its siblings, and leaves one entry. */
  async 'open-at'() {
    const [instant = 0, name = ''] = argument.split(',');
    await setTimeout(Number(instant) - Date.now());
    const stores = openStores(url);
    await stores.namespace<string>('opened').set(String(name), 'here');
    await stores.close();
    print('opened');
  },
};

await commands[command]?.();
