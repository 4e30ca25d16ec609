/** Logs when a provider refuses the identity of a channel, with advice for the operator. */
import type { ChannelTools, Log, Upstream } from 'sluice';

/** Minimum time between two log lines, in milliseconds. */
const pause = 60_000;

/** Provider and advice, for the log line. */
interface Refusals {
  /** Provider, as a sentence begins: `OCI Generative AI`. */
  readonly who: string;
  readonly advice: string;
  /** Statuses of responses that refuse the identity. Default: 401 and 403. */
  readonly statuses?: readonly number[];
}

/**
 * Returns a function that logs, at most once a minute, that an identity is refused although it was found and has not expired: it lacks
 * rights, or belongs to another account. The response passes unchanged.
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

/** Returns the tools of a channel with {@link refusalTeller} applied to all responses. */
export function tellingRefusals<Tools extends ChannelTools>(tools: Tools, refusals: Refusals): Tools {
  const { http, log } = tools;
  const logRefusal = refusalTeller(log, refusals);
  return {
    ...tools,
    http: { ...http, send: async (call, request) => logRefusal(await http.send(call, request)) },
  };
}
