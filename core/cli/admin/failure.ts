/** Failures of commands, with exit codes for scripts. */

/** Exit codes beside 0 for success, 1 for any other failure and 2 for a wrong command line. */
export const exitCodes = { denied: 3, missing: 4, conflict: 5 } as const;

/** Failure whose message is printed without a stack. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
  }
}

/** Returns the exit code for a status of the admin API. */
export function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return exitCodes.denied;
  if (status === 404) return exitCodes.missing;
  return status === 409 || status === 412 || status === 422 ? exitCodes.conflict : 1;
}
