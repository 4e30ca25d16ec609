/** Opens the sources of secrets that the plugins of a config offer. */
import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { createLog, type Log } from '../../log.ts';
import type { PluginEntry } from '../../sdk/define.ts';
import type { SecretSource } from '../../sdk/author/secrets.ts';
import type { SecretReference } from '../../settings/secret-reference.ts';
import { hideSecretsIn } from '../../settings/secret.ts';
import { openServices } from '../../upstream/services.ts';
import { sentences } from '../config.ts';
import { Secrets } from './index.ts';
import { eachOf, pluginPart, withSecrets } from './parts.ts';
import { ownSources } from './sources.ts';

/** Sources by their names, and how they are closed. */
interface OpenSources {
  readonly sources: ReadonlyMap<string, SecretSource>;
  /** Digests of the options of sources, by the names of the sources. */
  readonly digests: ReadonlyMap<string, string>;
  /** The list of plugins, with the secrets that the options of sources refer to. */
  readonly plugins: unknown;
  /** Closes all sources. Logs what fails, and never rejects. */
  close(): Promise<void>;
}

/** Options of {@link openSources}. */
interface Opening {
  readonly timeout: number;
  readonly log: Log | undefined;
  /** Receives the sentences about what is wrong. */
  readonly problems: string[];
}

/** Opens the sources of a list of plugins. Sends no request. */
export async function openSources(
  plugins: unknown,
  file: string,
  { timeout, log, problems }: Opening,
): Promise<OpenSources> {
  const sources = new Map<string, SecretSource>();
  const digests = new Map<string, string>();
  const closers: (() => void | Promise<void>)[] = [];
  // Sources are no parts of each other, so that none waits for itself.
  const local = new Secrets({ timeout });
  const ownLog = log ?? createLog('silent');
  let http: ReturnType<typeof openServices> | undefined;
  const openOne = async (entry: unknown, index: number): Promise<unknown> => {
    const { secrets: offered, name } = specOf(entry) ?? {};
    if (offered === undefined) return entry;
    const part = pluginPart(entry, file, index);
    const { where, schema } = part;
    const before = problems.length;
    const own = (await withSecrets(part, local, { problems, refuse: refuseOthers })) as PluginEntry;
    if (problems.length > before) return own;
    hideSecretsIn(schema, own.options);
    const parsed = schema.safeParse(own.options);
    if (!parsed.success) problems.push(...sentences(parsed.error, where));
    else if (sources.has(offered.source) || ownSources.has(offered.source))
      problems.push(`${where}: the source "${offered.source}" is taken. Keep one plugin that provides it.`);
    else
      try {
        http ??= openServices();
        const tools = {
          log: ownLog.child({ plugin: name }),
          http,
          onClose: (job: () => void | Promise<void>) => void closers.push(job),
        };
        sources.set(offered.source, offered.open(parsed.data, tools));
        digests.set(offered.source, digestOf(own.options));
      } catch (error) {
        problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
      }
    return own;
  };
  return {
    plugins: await eachOf(plugins, openOne),
    sources,
    digests,
    close: async () => {
      for (const job of [...closers.splice(0).toReversed(), () => http?.close()])
        try {
          // oxlint-disable-next-line no-await-in-loop -- in the reverse order of what was opened
          await job();
        } catch (error) {
          ownLog.error({ error }, 'a secret source could not be closed');
        }
    },
  };
}

function specOf(entry: unknown): PluginEntry['spec'] | undefined {
  if (typeof entry !== 'object' || entry === null || !('spec' in entry)) return undefined;
  const { spec, enabled } = entry as PluginEntry;
  return enabled && typeof spec === 'object' ? spec : undefined;
}

/** Returns a digest by which other options of a source are noticed, such as another address. */
function digestOf(options: unknown): string {
  const all = { depth: Infinity, maxArrayLength: Infinity, maxStringLength: Infinity, sorted: true };
  return createHash('sha256').update(inspect(options, all)).digest('hex').slice(0, 32);
}

function refuseOthers({ source }: SecretReference): string | undefined {
  return ownSources.has(source) ? undefined : 'options of a secret source can refer only to "env" and "file"';
}
