/** The description of a channel under test, and of a case. */
import type { Lack } from '../../../conformance/trial.ts';
import type { JsonValue } from '../../../model/json.ts';
import type { ChannelEntry } from '../../author/channel.ts';
import type { Voice } from '../voice.ts';

export type { Lack } from '../../../conformance/trial.ts';

/**
 * A channel kind, and what is to be known of it to try it out.
 *
 * @example
 * channelCases({ channel: ({ url, key }) => mine({ baseUrl: `${url}/v1`, key, models: ['test-model'] }), lacks: ['images'] })
 */
export interface ChannelUnderTest {
  /** Returns the channel as an operator writes it, at this address, with this key. It must serve `test-model`, or the `model` below. */
  channel(at: { readonly url: string; readonly key: string }): ChannelEntry;
  /** A model that the channel serves. Default `test-model`. */
  readonly model?: string;
  /** The format that it speaks to its provider. Default `chat-completions`. */
  readonly format?: string;
  /** How its provider speaks, where that is no public format, or not quite. */
  readonly voice?: Voice;
  readonly lacks?: readonly Lack[];
  /** What its provider answers to a GET, by its path with its query; undefined for 404. Default: 404 to every one. */
  readonly lists?: (path: string) => JsonValue | undefined;
  /** What a client is answered for a provider's status, where it is not as usual. */
  readonly errors?: Readonly<Record<number, number>>;
}

/**
 * One promise of every channel. Rejects with what is wrong.
 *
 * @example
 * test(name, run);
 */
export interface ChannelCase {
  readonly name: string;
  run(): Promise<void>;
}
