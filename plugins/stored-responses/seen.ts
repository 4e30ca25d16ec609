import type { StoredResponse } from './core-types.ts';

/** The states of a response that is still being made. */
export const runningStates: readonly string[] = ['queued', 'in_progress'];

/** Whether the response is still being made, as far as the record says. */
export function isRunning({ response }: StoredResponse): boolean {
  return runningStates.includes(String(response['status']));
}

/** Whether a run is under way at `now`, in Unix milliseconds: one whose process no longer reports is not. */
export function isAlive(
  { status, runsUntil = 0 }: { readonly status: string; readonly runsUntil?: number },
  now: number,
): boolean {
  return runningStates.includes(status) && runsUntil >= now;
}

/**
 * A record as a reader may see it: a run whose process no longer reports has failed. `now` is in Unix milliseconds. Gives the same
 * object when there is nothing to correct.
 */
export function asSeen(stored: StoredResponse, now: number): StoredResponse {
  const { runsUntil = 0, ...rest } = stored;
  if (!isRunning(stored) || runsUntil >= now) return stored;
  const error = {
    code: 'server_error',
    message: 'The response was interrupted before it was complete.',
  };
  return { ...rest, response: { ...stored.response, status: 'failed', error } };
}
