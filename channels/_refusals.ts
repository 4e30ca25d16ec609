import type { Log, Upstream } from 'sluice';

/** Milliseconds between two lines about the same. */
const pause = 60_000;

/** Whom a provider refuses, and what an operator can do about it. */
interface Refusals {
  readonly who: string;
  readonly advice: string;
}

/**
 * Tells the log, now and then, that a provider does not let an identity in which was found and has not ended: it lacks rights, or belongs
 * elsewhere. The answer is given back as it is.
 */
export function refusalTeller(
  log: Pick<Log, 'error'>,
  { who, advice }: Refusals,
): (answer: Upstream) => Upstream {
  let quietUntil = 0;
  return (answer) => {
    const { status } = answer;
    if ((status === 401 || status === 403) && Date.now() >= quietUntil) {
      quietUntil = Date.now() + pause;
      log.error({ status }, `${who} refused the identity of the channel (status ${status}). ${advice}`);
    }
    return answer;
  };
}
