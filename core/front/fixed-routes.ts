import type { Route } from '../sdk/format.ts';
import type { RouteCall } from './call-route.ts';

/**
 * Looks up routes without parameters by the whole URL, before the router. Most calls use such a route. They get their Koa context directly, because
 * the router, the middleware chain and Koa's own listener for the end of each response took 1.13 times the CPU of a small chat (370 us in place of
 * 327, in interleaved rounds of the bench). All other requests, such as URLs with a query, go to the router, which has all routes.
 */
export class FixedRoutes {
  readonly #byUrl = new Map<string, Map<string, RouteCall>>();

  /** Passes a path with parameters over. */
  add({ path, method }: Route, handler: RouteCall): void {
    if (/[*:{(\\]/.test(path)) return;
    const methods = this.#byUrl.get(path);
    if (methods === undefined) this.#byUrl.set(path, new Map([[method, handler]]));
    else methods.set(method, handler);
  }

  find(url: string, method: string): RouteCall | undefined {
    return this.#byUrl.get(url)?.get(method);
  }
}
