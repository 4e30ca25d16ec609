import { estimateInput as estimateChat, isChat, type Call, type Target, type Units } from '#sluice';

/** More than any model takes or gives: keeps nonsense out of sums of money. */
const mostTokens = 1e9;

/** What a call is expected to put in. */
export function estimateInput({ request, codec }: Call): number {
  const tokens = isChat(request) ? estimateChat(request) : (codec.estimate?.(request).input ?? 0);
  return Math.min(mostTokens, tokens);
}

/** Fields of a request by which earlier turns are counted as input that only the provider knows. */
const referring = ['previous_response_id', 'conversation'];

/** What comes on top of the words in the request: the longest context of the model when the provider adds turns that it keeps. */
export function unseenInput(call: Call, targets: readonly Target[]): number {
  if (!referring.some((name) => (call.body[name] ?? null) !== null)) return 0;
  return Math.max(0, ...targets.map(({ traits }) => traits.inputLimit ?? 0));
}

/** The most that a call may be answered with: its own limit, the model's, or what is assumed when neither is known. */
export function mostOutput(call: Call, targets: readonly Target[], assumed: number): number {
  const { request } = call;
  if (!isChat(request)) return Math.min(mostTokens, call.codec.estimate?.(request).output ?? 0);
  const { maxOutput, choices = 1 } = request.settings;
  const limits = targets.map(({ traits }) => traits.outputLimit);
  const known = limits.filter((limit) => limit !== undefined);
  const modelLimit = known.length === limits.length && known.length > 0 ? Math.max(...known) : undefined;
  const each =
    maxOutput === undefined
      ? (modelLimit ?? Math.max(assumed, ...known))
      : Math.min(maxOutput, modelLimit ?? maxOutput);
  return Math.min(mostTokens, Math.ceil(Math.max(0, each) * Math.max(1, choices)));
}

/** What a call is expected to use besides tokens. */
export function expectedUnits(call: Call): Units {
  const { request } = call;
  return isChat(request) ? {} : (call.codec.estimate?.(request).units ?? {});
}
