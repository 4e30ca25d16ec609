/** `sluice export`: prints the run-time configuration as TypeScript. */
import { loadConfig } from '../config/load-config.ts';
import { databaseOf } from '../config/database-of.ts';
import { RuntimeDefinitions } from '../config/runtime-config/definitions.ts';
import { exportRuntime } from '../config/runtime-config/export.ts';
import { openRuntimeConfigStore } from '../state/runtime-config/store.ts';
import { openStores } from '../state/stores.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** `sluice export`: prints what administrators have changed at run time. */
export const exportConfig: Command = {
  summary: 'Prints the run-time configuration as TypeScript.',
  help: `Usage: sluice export [--config FILE]

Prints what administrators have changed at run time, as TypeScript for gateway.config.ts, to standard output. Works on the
config's database, also while the gateway runs. Secrets are not printed: the comment at the top lists the variables of the
environment from which they are read. Once an entry is in the config file, the run-time entry is shadowed, and can be deleted.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {});
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is one word too many.`);
    const config = await loadConfig(values.config, { only: 'settings' });
    const stores = openStores(databaseOf(config), (error) => console.error(error.message));
    try {
      const store = await openRuntimeConfigStore(stores);
      const { text } = await exportRuntime(config, await store.read(), new RuntimeDefinitions(config));
      console.log(text);
      return 0;
    } finally {
      await stores.close();
    }
  },
};
