/** Limits and charges sessions over a WebSocket. */
import type { Observable } from 'rxjs';
import { z } from 'zod';
import { caller, GatewayError, type GatewayEvent } from 'sluice';
import { definePlugin, type Call, type InternalTools, type Next } from 'sluice/internal';
import { Session } from './session.ts';

const options = z.strictObject({
  /** Seconds after which the claim of a session is given back whose gateway was killed. Running sessions renew theirs. */
  lease: z.number().min(1).max(3600).default(60),
});

/**
 * A session over a WebSocket pays for each answer as soon as it has ended, and each is a record of its own in the usage log. What one
 * answer may come to is reserved as long as the session lasts, so that sessions at the same time cannot exceed a budget together; a session
 * whose budget is spent is ended with an error.
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
          'The gateway takes no sessions now: its database does not keep up with the calls that have ended.',
          { retryAfter: 5 },
        );
      }
      return open(call, next);
    };
  },
});
