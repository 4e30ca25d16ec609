/** `sluice export`: prints the run-time configuration as TypeScript. */
import { loadConfig } from '../config/load-config.ts';
import { databaseOf } from '../config/database-of.ts';
import { RuntimeDefinitions } from '../config/runtime-config/definitions.ts';
import { exportRuntime } from '../config/runtime-config/export.ts';
import { openRuntimeConfigStore } from '../state/runtime-config/store.ts';
import { openStores } from '../state/stores.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** The command. */
export const exportConfig: Command = {
  summary: 'Prints the run-time configuration as TypeScript.',
  help: `Usage: sluice export [--config FILE]

Prints the run-time configuration as TypeScript for gateway.config.ts. Reads it from the config's database. The gateway may run
meanwhile. Secrets are not printed: the comment at the top lists the environment variables from which the code reads them.
An entry in the config file overrides the run-time entry of the same name, which you can then delete.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {});
    if (positionals.length > 0) throw new UsageError(`Unexpected argument "${positionals[0]}".`);
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
