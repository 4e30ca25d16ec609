/** Koa's router, in the form that loads less, and the patterns of its routes. */
import { createRequire } from 'node:module';
import type * as Koa from '@koa/router';

const koa = createRequire(import.meta.url)('@koa/router') as typeof Koa;

/** Returns a Koa router. It is loaded as CommonJS, because its ES module imports `node:http`; `node-http.ts` has the cost of that. */
export function createRouter(): Koa.Router {
  return new koa.Router();
}

type Pattern = Pick<Koa.Layer, 'regexp' | 'paramNames'>;

/** Compiled patterns by path. Paths are written in formats and plugins, so that there are some hundred of them. */
const patterns = new Map<string, Pattern>();

/**
 * Adds a route. A pattern is compiled once in a process, because several routes share a path, and a process may hold several gateways:
 * compiling all of them took 2 ms or more of the 21 of a start in a process that had started others (November 2026).
 */
export function addRoute(
  router: Koa.Router,
  { method, path }: { readonly method: string; readonly path: string },
  handler: Koa.RouterMiddleware,
): void {
  const known = patterns.get(path);
  if (known === undefined) {
    const { regexp, paramNames } = router.register(path, [method], handler) as Koa.Layer;
    patterns.set(path, { regexp, paramNames });
    return;
  }
  const layer = router.register(known.regexp, [method], handler, { pathAsRegExp: true }) as Koa.Layer;
  layer.paramNames = known.paramNames;
  // The router names the path of the matched route, as it was written.
  layer.path = path;
}
