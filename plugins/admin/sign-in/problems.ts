/** Reasons why somebody is not signed in: a code for the login page, details for the log. */

/** Codes of the sentences that the login page shows. */
export const signInProblems = [
  'unavailable',
  'expired',
  'refused',
  'invalid',
  'email',
  'group',
  'unknown',
  'taken',
  'disabled',
  'failed',
] as const;

/** One of the {@link signInProblems}. */
export type SignInProblem = (typeof signInProblems)[number];

/** Ends a sign-in. The message is for the log: it holds no secret, and nobody who signs in sees it. */
export class SignInRefused extends Error {
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem, detail: string, cause?: unknown) {
    super(detail, cause === undefined ? undefined : { cause });
    this.problem = problem;
  }
}
