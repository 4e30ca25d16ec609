/** Declares plugins that offer secrets. */
import type { z } from 'zod';
import { definePlugin, type Plugin } from './plugin.ts';
import type { SecretsSpec } from './secrets.ts';

/**
 * Declares a plugin that offers secrets to the config and to run-time entries, which name them by reference. It sees no call, and runs where
 * the config lists it.
 *
 * @example
 * export default defineSecrets({
 *   name: 'secrets-folder',
 *   source: 'folder',
 *   options: z.object({ path: z.string().default('/run/secrets') }),
 *   open: ({ path }) => ({ read: ({ name }) => readFile(join(path, name), 'utf8') }),
 * });
 */
export function defineSecrets<Schema extends z.ZodType>(spec: SecretsSpec<Schema>): Plugin<Schema> {
  return definePlugin<Schema>({
    name: spec.name,
    stage: 'observe',
    whenListed: true,
    ...(spec.options === undefined ? {} : { options: spec.options }),
    secrets: { source: spec.source, open: (options, tools) => spec.open(options, tools) },
    // It is never run: the gateway leaves plugins with secrets out of the path of calls.
    setup: () => (call, next) => next(call),
  });
}
