import type { RouteHandler } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { AdminCheck } from './internal-tools.ts';

/** Returns a handler that answers whoever runs the gateway alone. `check` gives what the plugin with the admin API has set, if it is on. */
export function administered(check: () => AdminCheck | undefined, handler: RouteHandler): RouteHandler {
  return async (ctx) => {
    ctx.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    const admin = check();
    if (admin === undefined)
      throw new GatewayError(
        'not_found',
        'The admin API is off, and with it the routes that need its session.',
      );
    await admin(ctx);
    await handler(ctx);
  };
}
