/** Sources of secrets: how a plugin reads secrets for the config from a secret manager. */
import type { z } from 'zod';
import type { Services } from './services.ts';
import type { Log } from './tools.ts';

/**
 * Reference to a secret: `vault:llm/openai?version=3#key` asks the source `vault` for the name `llm/openai` and the version `3`.
 *
 * @example
 * const request: SecretRequest = { name: 'llm/openai', version: '3', signal: AbortSignal.timeout(1_000) };
 */
export interface SecretRequest {
  /** Text between the colon and `?` or `#`: 1 to 512 characters, without spaces, control characters and segments `..`. */
  readonly name: string;
  /** Absent: the newest one. */
  readonly version?: string;
  /** Aborts when the time for the secret is over. */
  readonly signal: AbortSignal;
}

/**
 * A source of secrets, opened with its options.
 *
 * @example
 * const source: SecretSource = { read: async ({ name }) => readFile(join(folder, name), 'utf8') };
 */
export interface SecretSource {
  /**
   * Reads a secret: a text, or an object with a member for each field. A field of a text is a member of the JSON object that it is. Resolves
   * with undefined where there is no such secret. Rejects with an Error whose message tells the operator what failed and what to do, and
   * holds no secret; the gateway tries once more, and keeps the last value that it knows.
   */
  read(request: SecretRequest): Promise<string | Readonly<Record<string, unknown>> | undefined>;
}

/**
 * Services for a source of secrets.
 *
 * @example
 * open: ({ url }, { http }) => ({ read: async ({ name }) => (await http.ask({ url: `${url}/${name}` })).text() })
 */
export interface SecretTools {
  readonly log: Log;
  /** Asks services that the operator has named. */
  readonly http: Services;
  /** Runs when the gateway closes or this configuration is replaced. */
  onClose(job: () => void | Promise<void>): void;
}

/**
 * Declaration of a source of secrets.
 *
 * @example
 * const spec: SecretsSpec<z.ZodObject> = { name: 'secrets-folder', source: 'folder', open };
 */
export interface SecretsSpec<Schema extends z.ZodType> {
  /** Name of the plugin: that of its file or folder. */
  readonly name: string;
  /** Stands in front of the colon in references: lower-case letters, digits and hyphens. */
  readonly source: string;
  /** A zod object; each member has a default, or is required. References in its options may be those of `env` and `file` alone. */
  readonly options?: Schema;
  /** Runs at the start, before the database is opened and channels are made. It sends no request, so that only reads can fail. */
  readonly open: (options: z.output<Schema>, tools: SecretTools) => SecretSource;
}
