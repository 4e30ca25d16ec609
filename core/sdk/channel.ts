import type { Observable } from 'rxjs';
import type { Call } from '../call/call.ts';
import type { Codecs, Operation } from './format.ts';
import type { Form } from '../model/form.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { ModelTraits } from '../model/traits.ts';
import type { KnownModel } from '../money/prices/known-models.ts';
import type { PriceRow } from '../settings/prices.ts';

/** A request as it goes to a provider, in one of the formats that the channel speaks. */
export interface UpstreamRequest {
  readonly operation: Operation;
  readonly format: string;
  /** The model's name at the provider. */
  readonly model: string;
  readonly stream: boolean;
  /** Below the base URL, with a leading slash. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Lower case: versions and beta flags. Never a client's credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** Default POST. The others carry no body. */
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly body: Buffer | string | Form;
}

/** One of the keys of a channel: told apart by what does not give it away. */
export interface ChannelKey {
  /** The same for the same key after a restart and in every gateway; empty for a channel without a key. */
  readonly id: string;
  /** Its place among the channel's keys, from 0. */
  readonly index: number;
}

/** Instructions that an operator adds to every chat of a channel. */
export interface SystemPrompt {
  readonly text: string;
  /** Where they stand beside the client's own: before them, behind them, or in their place. */
  readonly place: 'before' | 'after' | 'instead';
}

/** A provider's answer. */
export interface Upstream {
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it comes. Cold and for one subscriber: reading starts with the subscription, unsubscribing closes the provider's socket. Errors with GatewayError. */
  readonly bytes: Observable<Buffer>;
}

/** A price that the config did not name. */
export interface KnownPrice {
  /** The name or pattern by which it was found. */
  readonly name: string;
  /** Where it comes from, for people: `list of 2026-01-31`. */
  readonly source: string;
  readonly row: PriceRow;
}

/** One configured place that serves models. Made from a channel kind by an entry of the config. */
export interface Channel {
  readonly id: string;
  /** The channel kind's name. */
  readonly kind: string;
  /** Public names and `*` patterns. */
  readonly models: readonly string[];
  readonly priority: number;
  readonly weight: number;
  /** At least one, also where there is no key. */
  readonly keys: readonly ChannelKey[];
  readonly systemPrompt?: SystemPrompt;
  /** Milliseconds until the first event of a reply, and for a whole attempt, where they differ from the gateway's. */
  readonly firstTokenTimeout?: number;
  readonly attemptTimeout?: number;
  /** Shapes that only this kind of channel speaks: by operation, under a format name that `speaks` lists. */
  readonly codecs: Codecs;
  /** Members of bodies by which the provider chooses models by itself, in the spelling of `foldedName`. */
  readonly routingFields?: ReadonlySet<string>;
  /** For each operation the formats spoken, best first. An operation that is absent is answered 503. */
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /** The provider's name for a public model name; undefined when this channel does not serve it. */
  upstreamModel(model: string): string | undefined;
  /**
   * Public names that are known to be served now: those of `models`, and behind its patterns what the list of known models and the provider
   * itself name. The same array until something changes. Absent: the exact names of `models`.
   */
  listed?(): readonly string[];
  /** What one of the provider's models costs, as far as it is known without the config's `prices`. */
  priceOf?(upstreamModel: string): KnownPrice | undefined;
  traits(upstreamModel: string): ModelTraits;
  /** What the list of known models says of one. It is good enough to be shown, and no call depends on it. */
  known?(upstreamModel: string): Pick<KnownModel, 'operation' | 'inputLimit' | 'outputLimit'> | undefined;
  /**
   * Sends the request. Resolves when status and headers are there, whatever the status; rejects with GatewayError when there is no answer.
   * Reads the socket no faster than `call.gate` allows and lets go of it when `call.signal` aborts. `call.target.key` says which key to use.
   */
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /**
   * Opens a WebSocket to the provider and sends what `call.input` says. Resolves when it is open, with the messages that come as
   * `message` events; rejects with GatewayError when it is refused. Absent where there is none.
   */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
  close(): Promise<void>;
}
