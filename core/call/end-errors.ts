/** Reports errors of work at the end of a call: to the log and to plugins, or as a warning of the process. */
import type { Log } from '../log.ts';
import type { Notices } from '../sdk/notices.ts';

/** Receives an error of the work that is done at the end of a call: the error is reported, and changes nothing of the call. */
export type EndErrorReporter = (error: unknown, callId?: string, sentence?: string) => void;

/** Reports the error as a warning of the process. Used for calls that no front end has accepted. */
export const warnOfEndError: EndErrorReporter = (error) => {
  process.emitWarning(
    error instanceof Error ? error : new Error('Work at the end of a call failed.', { cause: error }),
  );
};

/** Returns a reporter that logs errors and notifies counters. */
export function createEndErrorReporter(log: Log, notices: Notices): EndErrorReporter {
  return (error, callId, sentence = 'work at the end of a call failed') => {
    log.error({ id: callId, error }, sentence);
    notices.emit('end-of-call-failed');
  };
}
