import type { ModelTraits } from '../model/traits.ts';
import type { Call } from '../call/call.ts';
import type { Channel, ChannelKey } from '../sdk/channel.ts';

/** One way to serve a call: a channel, one of its keys, and the model's name there. */
export interface Target {
  readonly channel: Channel;
  readonly key: ChannelKey;
  readonly model: string;
  readonly traits: ModelTraits;
}

/** The call on its way to a target: with what the operator wants every chat of its channel to be told. */
export function addressed(call: Call, target: Target): Call {
  const { systemPrompt } = target.channel;
  return call.with(
    systemPrompt === undefined || call.operation !== 'chat' ? { target } : { target, systemPrompt },
  );
}
