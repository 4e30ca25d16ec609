import type { ModelTraits } from '../model/traits.ts';
import type { Channel, ChannelKey } from '../channel.ts';

/** One way to serve a call: a channel, one of its keys, and the model's name there. */
export interface Target {
  readonly channel: Channel;
  readonly key: ChannelKey;
  readonly model: string;
  readonly traits: ModelTraits;
}
