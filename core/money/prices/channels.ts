/** Types through which price calculations see channels. */
import type { Channel } from '../../sdk/call.ts';

/** The channel that served a call, and the model's name there. */
export interface ServedBy {
  readonly channel: string;
  readonly model: string;
}

/** The channels of a gateway, and the candidates for a model. */
export interface PricedChannels {
  readonly channels: readonly Channel[];
  candidates(
    model: string,
  ): readonly { readonly channel: Channel; readonly targets: readonly { readonly model: string }[] }[];
}
