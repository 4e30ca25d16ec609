import { GatewayError, type Call } from 'sluice';
import type { Check, RemoteCheck } from './checks.ts';
import type { JudgedText, Verdict } from './remote/judge.ts';
import type { Reporter } from './reporter.ts';

/** What became of one remote check: `verdict` is undefined where it did not answer and that is allowed. */
export interface Asked {
  readonly check: Check;
  readonly verdict: Verdict | undefined;
}

/** Asks one check about texts. Rejects with the refusal of the call where the check does not answer and `whenDown` says so. */
export async function askCheck(
  check: Check & { readonly remote: RemoteCheck },
  side: 'request' | 'response',
  texts: readonly JudgedText[],
  call: Call,
  reporter: Reporter,
): Promise<Asked> {
  const { judge, longest, whenDown } = check.remote;
  try {
    const length = texts.reduce((sum, { text }) => sum + text.length, 0);
    if (length === 0) return { check, verdict: { flagged: false, reasons: [] } };
    if (length > longest) throw new Error(`The texts have more than ${longest} characters.`);
    return { check, verdict: await judge({ side, texts, call, signal: call.signal }) };
  } catch (error) {
    // A caller without budget is told so: nothing is wrong with the check.
    if (error instanceof GatewayError && error.status === 429 && error.code === 'insufficient_quota')
      throw error;
    reporter.down(call, check, error);
    if (whenDown === 'allow' || check.action === 'tag' || check.action === 'alert')
      return { check, verdict: undefined };
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
