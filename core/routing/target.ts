import type { ModelTraits } from '../model/traits.ts';
import type { Channel } from '../channel.ts';

/** One way to serve a call: a channel, and the model's name there. */
export interface Target {
  readonly channel: Channel;
  readonly model: string;
  readonly traits: ModelTraits;
}
