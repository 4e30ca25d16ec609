/** Opens the admin API of a remote gateway, or of the gateway of the config on this machine. */
import { hostname, userInfo } from 'node:os';
import { z } from 'zod';
import { loadConfig } from '../../config/load-config.ts';
import { databaseOf } from '../../config/database-of.ts';
import { openAdminTokens } from '../../state/admin-tokens/open.ts';
import { openStores } from '../../state/stores.ts';
import { remoteAccess, type RemoteAccess, type RemoteOptions } from '../remote.ts';
import { withUndo } from './ending.ts';
import { CommandFailure } from './failure.ts';
import type { Operations } from './operations.ts';

/** Lifetime of the token of one command, in milliseconds. Applies only when revoking the token fails. */
const tokenMs = 3_600_000;

/** Options that name the gateway of a command. */
export interface AccessOptions extends RemoteOptions {
  readonly config?: string | undefined;
}

/** Returns user and host of the command line, for the audit log. */
export function commandLineName(): string {
  let user = 'somebody';
  try {
    user = userInfo().username;
  } catch {
    // A container may have no name for its user.
  }
  return `${user}@${hostname()}`.replaceAll(/[^\w.@-]/g, '').slice(0, 100);
}

/**
 * Runs `work` with access to the gateway that the options name, else to the gateway of the config on this machine. For the latter it creates
 * a token in the database, and revokes it after the command. That is safe because a user who may write the database may do everything.
 * `describe` fetches the operations of a gateway.
 */
export async function withAccess<Result>(
  options: AccessOptions,
  describe: (url: string) => Promise<Operations>,
  work: (access: RemoteAccess, operations: Operations) => Promise<Result>,
): Promise<Result> {
  const remote = remoteAccess(options);
  if (remote !== undefined) return work(remote, await describe(remote.url));
  const config = await loadConfig(options.config, { only: 'settings' });
  const url = localUrl(config.settings.listen);
  const operations = await describe(url).catch((cause: unknown) => {
    if (cause instanceof CommandFailure) throw cause;
    throw new CommandFailure(
      `No gateway is running at ${url}. Start one with "sluice start", or name another one with --gateway URL.`,
      1,
      { cause },
    );
  });
  const scopes = scopesOf(operations);
  const stores = openStores(databaseOf(config), (error) => console.error(error.message));
  const tokens = openAdminTokens(stores);
  const createdAt = Date.now();
  const name = commandLineName();
  let making: ReturnType<typeof tokens.create> | undefined;
  return withUndo(
    async () => {
      making = tokens.create({
        name: `command line of ${name}`,
        role: 'admin',
        scopes,
        createdBy: { kind: 'command-line', id: 'command-line', name },
        createdAt,
        expiresAt: createdAt + tokenMs,
      });
      return work({ url, token: (await making).value }, operations);
    },
    async () => {
      try {
        const made = await making?.catch(() => undefined);
        if (made !== undefined) await tokens.revoke(made.token.id);
      } finally {
        await stores.close();
      }
    },
  );
}

/** Returns the address of the gateway of a config, as this machine reaches it. */
export function localUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  if (port === 0)
    throw new CommandFailure(
      'The config uses any free port, so the address of the gateway is unknown. Name it with --gateway URL.',
    );
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/** Returns all scopes that a token of this gateway may have. */
function scopesOf(operations: Operations): readonly string[] {
  const field = operations.get('createToken')?.fields.find(({ name }) => name === 'scopes');
  const { data } = z.object({ items: z.object({ enum: z.array(z.string()) }) }).safeParse(field?.schema);
  if (data === undefined)
    throw new CommandFailure(
      'The gateway has no operation to create tokens, because it runs another version of Sluice. Use the same version for both.',
    );
  return data.items.enum;
}
