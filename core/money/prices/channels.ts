import type { Channel } from '../../sdk/call.ts';

/** Who served a call: the id of a channel, and the model's name there. */
export interface ServedBy {
  readonly channel: string;
  readonly model: string;
}

/** The channels whose models have prices, and which of them serve a model. */
export interface PricedChannels {
  readonly channels: readonly Channel[];
  candidates(
    model: string,
  ): readonly { readonly channel: Channel; readonly targets: readonly { readonly model: string }[] }[];
}
