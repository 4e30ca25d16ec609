/**
 * A second process on the same database: `node responses-process.ts URL COMMAND [ARGUMENT]`. It prints one line per thing done, so that
 * the test knows what must be there afterwards.
 */
import { openResponseStore } from '../../../../core/state/responses/open.ts';
import { openStores } from '../../../../core/state/stores.ts';

const [url = '', command = '', argument = ''] = process.argv.slice(2);
const print = (line: string) => process.stdout.write(`${line}\n`);
const stores = openStores(url);
const store = openResponseStore(stores);

const commands: Record<string, () => Promise<void>> = {
  /** Adds batches of three to `conv_shared` until there are as many as asked for. */
  async append() {
    for (let batch = 0; batch < Number(argument); batch += 1) {
      const items = [0, 1, 2].map((part) => ({ id: `other-${batch}-${part}`, type: 'message' }));
      await store.appendItems('alice', 'conv_shared', items);
    }
    await stores.close();
    print('appended');
  },

  /** Saves a turn and adds its items to a conversation, over and over, until it is killed. */
  async 'write-until-killed'() {
    await store.createConversation({ id: 'conv_killed', owner: 'alice', createdAt: 1, metadata: {} }, []);
    const createdAt = Math.floor(Date.now() / 1000);
    const padding = 'x'.repeat(20_000);
    for (let number = 0; ; number += 1) {
      const id = `resp_${number}`;
      const input = [{ id: `in_${number}`, type: 'message', content: padding }];
      const output = [{ id: `out_${number}`, type: 'message', content: padding }];
      await store.save({
        id,
        owner: 'alice',
        createdAt,
        expiresAt: createdAt + 1000,
        response: { id, status: 'completed', output },
        input,
        ...(number === 0 ? {} : { previous: `resp_${number - 1}` }),
      });
      await store.appendItems('alice', 'conv_killed', [...input, ...output]);
      print(String(number));
    }
  },

  async chain() {
    const chain = await store.chain('alice', argument);
    await stores.close();
    print(JSON.stringify(chain?.map(({ id }) => id) ?? null));
  },
};

await commands[command]?.();
