import type { Observable } from 'rxjs';
import type { Call } from './call.ts';
import type { Operation } from './formats/format.ts';
import type { ModelTraits } from './model/traits.ts';

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
  readonly body: Buffer | string;
}

/** A provider's answer. */
export interface Upstream {
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it comes. Cold and for one subscriber: reading starts with the subscription, unsubscribing closes the provider's socket. Errors with GatewayError. */
  readonly bytes: Observable<Buffer>;
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
  /** For each operation the formats spoken, best first. An operation that is absent is answered 503. */
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /** The provider's name for a public model name; undefined when this channel does not serve it. */
  upstreamModel(model: string): string | undefined;
  traits(upstreamModel: string): ModelTraits;
  /**
   * Sends the request. Resolves when status and headers are there, whatever the status; rejects with GatewayError when there is no answer.
   * Reads the socket no faster than `call.gate` allows and lets go of it when `call.signal` aborts.
   */
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  close(): Promise<void>;
}
