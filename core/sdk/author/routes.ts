/** Types of the routes that plugins add. */
import type { ParameterizedContext } from 'koa';
import type { JsonObject } from '../../model/json.ts';

/**
 * A request to a plugin's own route, and its answer: Koa's context (https://koajs.com). `params` has what the path matched. The body is not
 * read: whoever reads `req` sets a limit.
 *
 * @example
 * const greet = (ctx: RouteContext): void => {
 *   ctx.body = { hello: ctx.params['name'] };
 * };
 */
export type RouteContext = ParameterizedContext<
  object,
  { readonly params: Readonly<Record<string, string>> }
>;

/**
 * Answers a plugin's own route. A GatewayError that it throws is answered with its status and sentence, as is what `ctx.throw` makes of a
 * status below 500; anything else is a 500 that tells nothing, and stands in the log.
 *
 * @example
 * tools.route('GET', '/hello/:name', (ctx) => {
 *   ctx.body = `Hello, ${ctx.params['name']}.`;
 * });
 */
export type RouteHandler = (ctx: RouteContext) => void | Promise<void>;

/**
 * Address of the client of a request to a route.
 *
 * @example
 * const { ip } = tools.clientAddress(ctx.req);
 */
export interface ClientAddress {
  /** The address that a trusted proxy (`trustedProxies`) names, or that of the connection. */
  readonly ip: string;
  /** False where the request came through a proxy that is not trusted: `ip` is the address of the proxy. */
  readonly isCertain: boolean;
}

/**
 * A change that a route for administrators has made, for the audit log.
 *
 * @example
 * await admin.record({ action: 'acknowledge', target: 'budget key_1', after: { acknowledgedAt: Date.now() } });
 */
export interface AdminChange {
  /** A word for what was done: `acknowledge`. The audit log has it behind the name of the plugin: `alerts.acknowledge`. */
  readonly action: string;
  /** Id of what was changed. */
  readonly target?: string;
  /** Members that were changed, without secrets. */
  readonly before?: JsonObject;
  readonly after?: JsonObject;
}

/**
 * A request to a route for administrators that may be answered.
 *
 * @example
 * const acknowledge = async (_ctx: RouteContext, admin: AdminRequest) => admin.record({ action: 'acknowledge' });
 */
export interface AdminRequest {
  /** The sender: the admin password, a user or a token of the admin API. */
  readonly actor: {
    readonly kind: 'password' | 'user' | 'token';
    readonly id: string;
    readonly name: string;
  };
  /** Writes a change to the audit log, with its author. Rejects when the database fails. */
  record(change: AdminChange): Promise<void>;
}

/**
 * Answers a plugin's route for administrators: see {@link RouteHandler}.
 *
 * @example
 * tools.adminRoute('POST', '/api/counts/reset', async (ctx, admin) => {
 *   ctx.body = { ok: true };
 *   await admin.record({ action: 'reset' });
 * }, { records: true });
 */
export type AdminRouteHandler = (ctx: RouteContext, admin: AdminRequest) => void | Promise<void>;
