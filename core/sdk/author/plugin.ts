/** Public API for declaring a plugin: `definePlugin`, the stages, and the types of handlers and entries in the config. */
import type { Observable } from 'rxjs';
import type { z } from 'zod';
import type { GatewayEvent } from '../../model/event.ts';
import type { Call } from './call.ts';
import type { SecretSource, SecretTools } from './secrets.ts';
import type { Services } from './services.ts';
import type { PluginTools } from './tools.ts';

/**
 * Stage in which a plugin runs, outermost first:
 * `observe` sees everything, also refusals (headers only: the body is not read yet);
 * `identify` finds out who calls, by headers alone;
 * — the body is read here, after the caller is known —
 * `admit` refuses or meters: behind it the caller may use the model, within its limits, and the maximum cost of the call is reserved;
 * `shape` changes requests and replies, or answers by itself; — a channel is chosen here, and each attempt runs the next stage anew —
 * `translate` encodes the request in a format of the channel.
 *
 * @example
 * definePlugin({ name: 'greeter', stage: 'shape', setup: () => (call, next) => next(call) });
 */
export type Stage = 'observe' | 'identify' | 'admit' | 'shape' | 'translate';

/**
 * Parts of replies that a plugin reads. `content` turns pass-through off, so that every reply comes as decoded events; `usage` makes streams
 * report their usage.
 *
 * @example
 * definePlugin({ name: 'shouting', stage: 'shape', reads: 'content', setup });
 */
export type Reads = 'nothing' | 'usage' | 'content';

/**
 * Function that returns the parts of replies that a plugin reads with these options, which are validated.
 *
 * @example
 * definePlugin({ name: 'recorder', stage: 'observe', reads: ({ texts }) => (texts ? 'content' : 'nothing'), options, setup });
 */
export type ReadsOf<Schema extends z.ZodType> = {
  of(options: z.output<Schema>): Reads;
}['of'];

/**
 * The rest of the pipeline. Call it once (again only to retry or fall back, before the first event was passed on).
 *
 * @example
 * const reply = await next(call);
 */
export type Next = (call: Call) => Promise<Observable<GatewayEvent>>;

/**
 * Function of a plugin that handles one call. The promise is the request phase: `await` what you need, throw a GatewayError to refuse, or
 * answer by yourself without calling `next`. The observable is the response phase: synchronous operators only; unsubscribing cancels everything up
 * to the provider's socket. Returning what `next` gave costs nothing per event.
 *
 * @example
 * async function greeter(call, next) {
 *   addReplyHeaders(call, { 'x-greeting': 'hello' });
 *   return next(call);
 * }
 */
export type Handler = (call: Call, next: Next) => Promise<Observable<GatewayEvent>>;

/**
 * Declaration of a plugin. `definePlugin` carries its types; only `name`, `stage` and `setup` are required.
 *
 * @example
 * definePlugin({ name: 'greeter', stage: 'observe', options: z.object({ greeting: z.string().default('hello') }), setup });
 */
export interface PluginSpec<Schema extends z.ZodType> {
  /** The file's or folder's name. */
  readonly name: string;
  readonly stage: Stage;
  /** Plugins of the same or an earlier stage that must run before this one. It is an error when one of them is off. */
  readonly after?: readonly string[];
  /** Plugins of the same stage that must run after this one, where they are on. */
  readonly before?: readonly string[];
  /** Parts of replies that it reads, or a function of its options. Default `nothing`. */
  readonly reads?: Reads | ReadsOf<Schema>;
  /** True: discovery alone does not switch it on, an entry in the config does. */
  readonly whenListed?: boolean;
  /**
   * Signs the operator in at a service of the plugin, for `sluice login NAME ADDRESS`. Returns the credential, which the command prints and
   * the operator puts into the plugin's options.
   */
  readonly signIn?: (request: SignInRequest) => Promise<string>;
  /** A zod object; every member has a default, so that a file dropped into the folder runs. */
  readonly options?: Schema;
  /**
   * Options that administrators may set while the gateway runs, in the admin API, where the config file does not set them. A change starts the
   * plugin anew with the new options, as a reload does.
   *
   * @example
   * definePlugin({ name: 'redact', stage: 'shape', options: z.object({ words: z.array(z.string()).default([]) }), editable: ['words'], setup });
   */
  readonly editable?: readonly (keyof z.input<Schema> & string)[];
  /**
   * Tables of the options to which administrators may add rows while the gateway runs: `alias`, by the other name of a model; `access`, by the
   * id of a key or an owner, or `*` for all. Rows of the config file stay as they are.
   */
  readonly editableTables?: { readonly [Kind in 'alias' | 'access']?: keyof z.input<Schema> & string };
  /** Makes the plugin a source of secrets, which sees no call: `defineSecrets` sets it. */
  readonly secrets?: {
    /** Stands in front of the colon in references. */
    readonly source: string;
    readonly open: (options: z.output<Schema>, tools: SecretTools) => SecretSource;
  };
  /** Runs once at start-up. Name the inner function: it shows in stack traces. */
  readonly setup: (options: z.output<Schema>, tools: PluginTools) => Handler | Promise<Handler>;
}

/**
 * Sign-in that the operator has started with `sluice login NAME ADDRESS`.
 *
 * @example
 * signIn: async ({ address, http, tell }) => waitForToken(await startSignIn(address, http), tell)
 */
export interface SignInRequest {
  /** The service, as the operator wrote it. */
  readonly address: string;
  /** Scopes, separated by spaces. Default: those that the service requests. */
  readonly scope?: string | undefined;
  /** Registration of the gateway at the service. Absent: the plugin finds one. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** Address of a document that describes the gateway, where the service takes that as a registration. */
  readonly clientMetadata?: string | undefined;
  /** Port on 127.0.0.1 to which the browser comes back. Absent: any free one. */
  readonly port?: number | undefined;
  readonly http: Services;
  /** Shows a text to the person at the terminal. */
  tell(text: string): void;
}

/**
 * A plugin in the config's list: its options, or that it is off.
 *
 * @example
 * const plugins: PluginEntry[] = [redact({ words: ['moonshine'] }), logging.off()];
 */
export interface PluginEntry {
  readonly kind: 'plugin';
  readonly spec: PluginSpec<z.ZodType>;
  readonly options: unknown;
  readonly enabled: boolean;
}

/**
 * Default export of a plugin file: call it with options in `gateway.config.ts`, or switch the plugin off.
 *
 * @example
 * plugins: [redact({ words: ['moonshine'] }), logging.off()]
 */
export interface Plugin<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): PluginEntry;
  readonly spec: PluginSpec<Schema>;
  off(): PluginEntry;
}

/**
 * Declares a plugin. A file in `plugins/` that exports one by default runs by being there.
 *
 * @example
 * export default definePlugin({
 *   name: 'powered-by',
 *   stage: 'observe',
 *   setup: () =>
 *     async function poweredBy(call, next) {
 *       addReplyHeaders(call, { 'x-powered-by': 'my gateway' });
 *       return next(call);
 *     },
 * });
 */
export function definePlugin<Schema extends z.ZodType>(spec: PluginSpec<Schema>): Plugin<Schema> {
  const wide = spec as unknown as PluginSpec<z.ZodType>;
  const plugin = (options?: z.input<Schema>): PluginEntry => ({
    kind: 'plugin',
    spec: wide,
    options: options ?? {},
    enabled: true,
  });
  return Object.assign(plugin, {
    spec,
    off: (): PluginEntry => ({ kind: 'plugin', spec: wide, options: {}, enabled: false }),
  });
}
