/**
 * Types at the border between the gateway and channels: requests and responses of providers, keys, regions, and known models with their
 * prices.
 */
import type { Observable } from 'rxjs';
import type { Readable } from 'node:stream';
import type { Operation } from './format.ts';
import type { Form } from '../model/form.ts';
import type { PriceRow } from '../settings/prices.ts';
import type { ModelTraits } from '../model/traits.ts';

/**
 * A body that is streamed: read once, while it is sent. Destroyed when the request is abandoned.
 *
 * @example
 * const upload: BodyStream = { bytes: createReadStream(path), length: size };
 */
export interface BodyStream {
  readonly bytes: Readable;
  /** Number of bytes; absent where it is not known. */
  readonly length?: number;
}

/**
 * A request as it goes to a provider, in one of the formats that the channel speaks.
 *
 * @example
 * open: (call, { path, body, stream }) => http.send(call, { url: baseUrl + path, headers: headersFor(stream), body })
 */
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
  /** Default POST. GET, DELETE and PUT carry no body. */
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PATCH' | 'PUT';
  readonly body: Buffer | string | Form;
  /** Stream that is sent in place of the body; `headers` have its content type. */
  readonly upload?: BodyStream;
  /** A service of the provider beside the API, whose name is inserted before the version at the end of the base URL. */
  readonly service?: 'upload';
}

/**
 * Key of a channel, without the secret.
 *
 * @example
 * const key = tools.keys[call.target?.key.index ?? 0];
 */
export interface ChannelKey {
  /** The same for the same key after a restart and in every gateway; empty for a channel without a key. */
  readonly id: string;
  /** Its place among the channel's keys, from 0. */
  readonly index: number;
  /**
   * Site of the key, for a channel with several regions, from 0 in the operator's order: a later site is tried when no key of an earlier one
   * is available, and does not share its failures. Absent: all keys have one site.
   */
  readonly site?: number;
}

/**
 * A region of a provider, and the key that is sent there.
 *
 * @example
 * const regions: KeyRegion[] = [{ region: 'eu-west-1', key: 0 }, { region: 'us-east-1', key: 0, site: 1 }];
 */
export interface KeyRegion {
  readonly region: string;
  /** Index in `ChannelTools.keys`. Absent: no key is sent. */
  readonly key?: number;
  /** See `ChannelKey.site`. */
  readonly site?: number;
}

/** Instructions that an operator adds to every chat of a channel. */
export interface SystemPrompt {
  readonly text: string;
  /** Place of the instructions: before or after those of the client, or in place of them. */
  readonly place: 'before' | 'after' | 'instead';
}

/**
 * A provider's response.
 *
 * @example
 * const { status, bytes } = await http.send(call, { url, headers, body: request.body });
 */
export interface Upstream {
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it comes. Cold and for one subscriber: reading starts with the subscription, unsubscribing closes the provider's socket. Errors with GatewayError. */
  readonly bytes: Observable<Buffer>;
}

/** A price from another source than the config. */
export interface KnownPrice {
  /** The name or pattern by which it was found. */
  readonly name: string;
  /** Source of the price, for people: `list of 2026-01-31`. */
  readonly source: string;
  readonly row: PriceRow;
}

/**
 * A model in the list of its provider, with its price there.
 *
 * @example
 * const model: PricedModel = { name: 'vendor/model', price: { input: 1, output: 5 } };
 */
export interface PricedModel {
  /** The provider's name of it. */
  readonly name: string;
  readonly price?: PriceRow;
  /** True for another name of a listed model, such as that of one host of it: it has a price, and no place in lists of models. */
  readonly isVariant?: boolean;
}

/** Kinds of input that a model may take besides text. */
export const media = ['image', 'document', 'audio', 'video'] as const;
/** One of them. */
export type Medium = (typeof media)[number];

/** Capabilities that a chat model may have. */
export const abilities = [
  'tools',
  'parallel-tools',
  'structured-output',
  'reasoning',
  'prompt-cache',
  'web-search',
] as const;
/** One of them. */
export type Ability = (typeof abilities)[number];

/** Traits of a model that a public list states. */
export type KnownTraits = Pick<
  ModelTraits,
  | 'formats'
  | 'efforts'
  | 'thinksByDefault'
  | 'stopsThinking'
  | 'forcedTools'
  | 'midSystem'
  | 'cacheMark'
  | 'refuses'
>;

/** Entry of a public list for one model of a provider. */
export interface KnownModel {
  /** Operation of the model. Absent: chat. */
  readonly operation?: Operation;
  /** Longest context, in tokens. */
  readonly inputLimit?: number;
  /** Most output tokens. */
  readonly outputLimit?: number;
  /** Kinds of input besides text. */
  readonly takes?: readonly Medium[];
  /** Capabilities that it is known to have, and known not to have; the others are not known. */
  readonly can?: readonly Ability[];
  readonly cannot?: readonly Ability[];
  /** Traits that the list states for exactly this model. `refuses` is added to what the channel kind states, the others replace it. */
  readonly traits?: KnownTraits;
  /** True when the provider's announced end of the model is before the date of the list: the model has a price, but is not shown. */
  readonly retired?: true;
  /** Absent where the list knows none that a row can say. */
  readonly price?: PriceRow;
}
