/** Sends calls through the pipeline with an account whose record observes the response. */
import type { Call } from '../../sdk/call.ts';
import type { Next } from '../../sdk/define.ts';
import { observe } from '../../sdk/operators.ts';
import { accountOf } from './index.ts';
import type { CallRecord } from './record.ts';
import type { AccountServices } from './services.ts';

/** Returns a pipeline whose calls have open accounts, each of which observes its response outside of all plugins. */
export function accounted(services: AccountServices, pipeline: Next): Next {
  return (call) => {
    const account = accountOf(call);
    account.open(services);
    return followed(account.record, call, pipeline);
  };
}

/** Sends a call on its way with a record that observes its response. Rejects as `next` does. */
export function followed(record: CallRecord, call: Call, next: Next): ReturnType<Next> {
  record.isFollowed = true;
  const failed = (error: unknown): never => {
    record.end('error', error);
    throw error;
  };
  try {
    return next(call).then(observe(record), failed);
  } catch (error) {
    return failed(error);
  }
}
