/** Determines from a stored record whether a response still runs. One whose process no longer renews its lease counts as failed. */
import type { StoredResponse } from './core-types.ts';

/** States of a response that still runs. */
export const runningStates: readonly string[] = ['queued', 'in_progress'];

/** Returns true when the response still runs according to its record. */
export function isRunning({ response }: StoredResponse): boolean {
  return runningStates.includes(String(response['status']));
}

/** Returns true when the response runs and its lease has not expired at `now`, in Unix milliseconds. */
export function isAlive(
  { status, runsUntil = 0 }: { readonly status: string; readonly runsUntil?: number },
  now: number,
): boolean {
  return runningStates.includes(status) && runsUntil >= now;
}

/** Returns a record as clients may see it: as failed where its lease has expired at `now` (Unix milliseconds). Otherwise returns the same object. */
export function asSeen(stored: StoredResponse, now: number): StoredResponse {
  const { runsUntil = 0, ...rest } = stored;
  if (!isRunning(stored) || runsUntil >= now) return stored;
  const error = {
    code: 'server_error',
    message: 'The response was interrupted before it was complete.',
  };
  return { ...rest, response: { ...stored.response, status: 'failed', error } };
}
