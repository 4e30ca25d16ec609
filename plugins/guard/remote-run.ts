import { GatewayError, type Call } from 'sluice';
import { tells, type Check, type RemotelyChecked } from './checks.ts';
import type { Question, Verdict } from './remote/judge.ts';
import type { Reporter } from './reporter.ts';

/** What became of one remote check: `verdict` is undefined where it did not answer and that is allowed. */
export interface Asked {
  readonly check: Check;
  readonly verdict: Verdict | undefined;
}

/** Asks one check about texts that a call waits for: see {@link askCheck}. */
export function askInCall(
  check: RemotelyChecked,
  { side, texts, call }: Pick<Question, 'side' | 'texts' | 'call'>,
  reporter: Reporter,
): Promise<Asked> {
  return askCheck(check, { side, texts, call, signal: call.signal, outlivesCall: false }, reporter);
}

/**
 * Asks one check about texts. Rejects with the refusal of the call where the check does not answer and `whenDown` says so, and where the client
 * has left.
 */
export async function askCheck(
  check: RemotelyChecked,
  question: Question,
  reporter: Reporter,
): Promise<Asked> {
  const { judge, longest, whenDown } = check.remote;
  const { texts, call, outlivesCall } = question;
  try {
    const length = texts.reduce((sum, { text }) => sum + text.length, 0);
    if (length === 0) return { check, verdict: { flagged: false, reasons: [] } };
    if (length > longest) throw new Error(`The texts have more than ${longest} characters.`);
    return { check, verdict: await judge(question) };
  } catch (error) {
    if (!outlivesCall && call.signal.aborted)
      throw new GatewayError('client_closed_request', 'The client left while a check was asked.');
    // A caller without budget is told so: nothing is wrong with the check.
    if (!tells(check) && error instanceof GatewayError && error.code === 'insufficient_quota') throw error;
    reporter.down(call, check, error);
    if (whenDown === 'allow' || tells(check)) return { check, verdict: undefined };
    throw new GatewayError(
      'server_is_overloaded',
      `The check "${check.name}" did not answer. Try again later.`,
      {
        cause: error instanceof Error ? error.name : undefined,
      },
    );
  }
}

/** Throws the refusal where the verdict is one; notes what was found otherwise. */
export function settle(
  { check, verdict }: Asked,
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
