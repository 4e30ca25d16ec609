/** Limits and charges sessions over a WebSocket. */
import type { Observable } from 'rxjs';
import { z } from 'zod';
import { caller, GatewayError, type GatewayEvent } from 'sluice';
import { definePlugin, type Call, type InternalTools, type Next } from 'sluice/internal';
import { Session } from './session.ts';

const options = z.strictObject({
  /** Seconds after which the reservation of a session is released if its gateway was killed. Running sessions renew their reservations. */
  lease: z.number().min(1).max(3600).default(60),
});

/**
 * Charges each response of a WebSocket session when the response ends, with a usage record of its own. The maximum cost of one response is
 * reserved for the whole session, so that concurrent sessions cannot exceed a budget together. A session whose budget is spent ends with an
 * error.
 */
export default definePlugin({
  name: 'realtime-sessions',
  stage: 'admit',
  options,
  setup({ lease }, tools: InternalTools) {
    const { bookkeeper } = tools;

    const open = async (call: Call, next: Next): Promise<Observable<GatewayEvent>> => {
      const session = new Session(call, call.get(caller), { ...tools, lease: Math.round(lease * 1000) });
      call.onEnd(() => session.end());
      await session.reserve();
      if (session.over)
        throw new GatewayError('client_closed_request', 'The client left before its session was open.');
      try {
        return session.follow(await next(call));
      } catch (error) {
        session.end();
        throw error;
      }
    };

    return function realtimeSessions(call: Call, next) {
      if (call.operation !== 'realtime') return next(call);
      if (bookkeeper.full) {
        throw new GatewayError(
          'server_is_overloaded',
          'The gateway accepts no sessions now, because its database does not keep up with settlements. Retry later.',
          { retryAfter: 5 },
        );
      }
      return open(call, next);
    };
  },
});
