/** Counts failures of targets that plugins recover from. */
import type { AttemptEvent } from '../model/event.ts';
import type { Target } from '../sdk/call.ts';
import type { GatewayError } from '../sdk/errors.ts';
import type { Health } from '../sdk/health.ts';
import type { Notices } from '../sdk/notices.ts';
import { failureCause } from './failure-cause.ts';

/** Returns `PluginTools.reportFailure` for a gateway. */
export function createFailureReports(
  health: Health,
  notices: Notices,
): (target: Target, error: GatewayError) => AttemptEvent {
  return (target, error) => {
    const channel = target.channel.id;
    const { model } = target;
    health.enter(target)?.failed(error);
    notices.emit('attempt-failed', { channel, model, error });
    const cause = failureCause(error);
    return {
      type: 'attempt',
      channel,
      model,
      failure: error.code,
      ...(cause === undefined ? {} : { cause }),
    };
  };
}
