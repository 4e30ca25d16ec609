import type { Call, Target } from '../sdk/call.ts';

/** The call on its way to a target: with what the operator wants every chat of its channel to be told. */
export function addressed(call: Call, target: Target): Call {
  const { systemPrompt } = target.channel;
  return call.with(
    systemPrompt === undefined || call.operation !== 'chat' ? { target } : { target, systemPrompt },
  );
}
