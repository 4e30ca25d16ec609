import type { ChannelTools, Log, Upstream } from 'sluice';

/** Milliseconds between two lines about the same. */
const pause = 60_000;

/** Whom a provider refuses, and what an operator can do about it. */
interface Refusals {
  /** Who refuses, as a sentence begins: `OCI Generative AI`. */
  readonly who: string;
  readonly advice: string;
  /** The statuses by which it refuses. Default: 401 and 403. */
  readonly statuses?: readonly number[];
}

/**
 * Tells the log, now and then, that a provider does not let an identity in which was found and has not ended: it lacks rights, or belongs
 * elsewhere. The answer is given back as it is.
 */
export function refusalTeller(
  log: Pick<Log, 'error'>,
  { who, advice, statuses = [401, 403] }: Refusals,
): (answer: Upstream) => Upstream {
  let quietUntil = 0;
  return (answer) => {
    const { status } = answer;
    if (statuses.includes(status) && Date.now() >= quietUntil) {
      quietUntil = Date.now() + pause;
      log.error({ status }, `${who} refused the identity of the channel (status ${status}). ${advice}`);
    }
    return answer;
  };
}

/** The tools of a channel whose requests show an identity: see {@link refusalTeller}. */
export function tellingRefusals<Tools extends ChannelTools>(tools: Tools, refusals: Refusals): Tools {
  const { http, log } = tools;
  const told = refusalTeller(log, refusals);
  return { ...tools, http: { ...http, send: async (call, request) => told(await http.send(call, request)) } };
}
