import type { AdminRouteHandler, RouteHandler } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { AdminCheck, AdminRoute } from './internal-tools.ts';

/**
 * Returns a handler that answers sessions of the admin API alone. `check` returns how the plugin with the admin API checks them; undefined where
 * that plugin is off.
 */
export function administered(
  check: () => AdminCheck | undefined,
  route: AdminRoute,
  handler: AdminRouteHandler,
): RouteHandler {
  return async (ctx) => {
    ctx.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    const admin = check();
    if (admin === undefined)
      throw new GatewayError(
        'not_found',
        'The admin API is off, so routes that need its session are too. Enable the admin plugin.',
      );
    await handler(ctx, await admin(ctx, route));
  };
}
