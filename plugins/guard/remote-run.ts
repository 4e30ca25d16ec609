/** Runs a remote check on texts, and turns its verdict or its failure into a refusal or a reported finding. */
import { GatewayError, type Call } from 'sluice';
import { tells, type Check, type RemotelyChecked } from './checks.ts';
import type { Find, JudgedText, Question, Verdict } from './remote/judge.ts';
import type { Reporter } from './reporter.ts';

/** Result of one remote check. `verdict` is undefined where the check did not respond and that is allowed. */
export interface CheckOutcome {
  readonly check: Check;
  readonly verdict: Verdict | undefined;
}

/** Runs a remote check on texts while the call waits: see {@link runCheck}. */
export function runCheckInCall(
  check: RemotelyChecked,
  { side, texts, call }: Pick<Question, 'side' | 'texts' | 'call'>,
  reporter: Reporter,
): Promise<CheckOutcome> {
  return runCheck(check, { side, texts, call, signal: call.signal, outlivesCall: false }, reporter);
}

/**
 * Asks one check about texts. Rejects with the refusal of the call where the check does not answer and `whenDown` says so, and where the client
 * has left.
 */
export async function runCheck(
  check: RemotelyChecked,
  question: Question,
  reporter: Reporter,
): Promise<CheckOutcome> {
  const { judge, longest, whenDown } = check.remote;
  const { call, outlivesCall } = question;
  // Services refuse empty texts.
  const filled = question.texts.flatMap(({ text }, index) => (text === '' ? [] : [index]));
  const texts = filled.flatMap((index) => question.texts[index] ?? []);
  try {
    const length = texts.reduce((sum, { text }) => sum + text.length, 0);
    if (length === 0) return { check, verdict: { flagged: false, reasons: [] } };
    if (length > longest) throw new Error(`The texts have more than ${longest} characters.`);
    const verdict = await judge({ ...question, texts });
    if (check.action !== 'mask') return { check, verdict };
    const finds = verdict.finds?.map((find) => ({ ...find, text: filled[find.text] ?? -1 })) ?? [];
    if (!finds.every((find) => isInTexts(question.texts, find)))
      throw new Error('The check reported a position outside of the texts.');
    return { check, verdict: { ...verdict, flagged: verdict.flagged || finds.length > 0, finds } };
  } catch (error) {
    if (!outlivesCall && call.signal.aborted)
      throw new GatewayError('client_closed_request', 'The client left during a check.');
    // The caller's budget is spent, which is no failure of the check.
    if (!tells(check) && error instanceof GatewayError && error.code === 'insufficient_quota') throw error;
    reporter.down(call, check, error);
    if (whenDown === 'allow' || tells(check)) return { check, verdict: undefined };
    throw new GatewayError(
      'server_is_overloaded',
      `The check "${check.name}" did not respond. Retry later.`,
      {
        cause: error instanceof Error ? error.name : undefined,
      },
    );
  }
}

function isInTexts(texts: readonly JudgedText[], { text, start, end }: Find): boolean {
  return start >= 0 && start < end && end <= (texts[text]?.text.length ?? -1);
}

/** Throws the refusal where the verdict leads to one; otherwise reports the finding. */
export function settle(
  { check, verdict }: CheckOutcome,
  side: 'request' | 'response',
  call: Call,
  reporter: Reporter,
): void {
  if (verdict?.flagged !== true) return;
  const found = { check, side, reasons: verdict.reasons };
  const cannotMask =
    check.action === 'mask' && (verdict.blocked === true || (verdict.finds ?? []).length === 0);
  if (check.action === 'refuse' || cannotMask) throw reporter.refusal(call, found);
  reporter.note(call, found);
}
