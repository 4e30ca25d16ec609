import type { Observable } from 'rxjs';
import type { Readable } from 'node:stream';
import type { Operation } from './format.ts';
import type { Form } from '../model/form.ts';
import type { PriceRow } from '../settings/prices.ts';
import type { ModelTraits } from '../model/traits.ts';

/**
 * A body that nobody holds: it is read while it is sent, once. Destroyed when the request comes to nothing.
 *
 * @example
 * const upload: BodyStream = { bytes: createReadStream(path), length: size };
 */
export interface BodyStream {
  readonly bytes: Readable;
  /** How many bytes there are; absent where that is not known. */
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
  /** Sent in place of the body, as it comes; `headers` name its type. */
  readonly upload?: BodyStream;
  /** A service of the provider's beside the API, whose name stands in front of the version that the base URL ends with. */
  readonly service?: 'upload';
}

/**
 * One of the keys of a channel: told apart by what does not give it away.
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
   * Where it is good for, of a channel that stands at several places (regions), from 0 in the operator's order: a later one is asked when
   * none of an earlier one can be, and shares none of its failures. Absent: all keys stand at one.
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
  /** Where they stand beside the client's own: before them, behind them, or in their place. */
  readonly place: 'before' | 'after' | 'instead';
}

/**
 * A provider's answer.
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

/** A price that the config did not name. */
export interface KnownPrice {
  /** The name or pattern by which it was found. */
  readonly name: string;
  /** Where it comes from, for people: `list of 2026-01-31`. */
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

/** What a model may take besides text. */
export const media = ['image', 'document', 'audio', 'video'] as const;
/** One of them. */
export type Medium = (typeof media)[number];

/** What a chat model may be able to do. */
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

/** Traits that a public list states of a model. */
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

/** What a public list says of one model of a provider. */
export interface KnownModel {
  /** What it is for. Absent: chat. */
  readonly operation?: Operation;
  /** Longest context, in tokens. */
  readonly inputLimit?: number;
  /** Most output tokens. */
  readonly outputLimit?: number;
  /** What it takes besides text. */
  readonly takes?: readonly Medium[];
  /** What it is known to do, and what it is known not to; of the rest the list says nothing. */
  readonly can?: readonly Ability[];
  readonly cannot?: readonly Ability[];
  /** Traits that the list states for exactly this model. `refuses` is added to what the channel kind states, the others replace it. */
  readonly traits?: KnownTraits;
  /** True when the provider had announced its end for a day before that of the list: it has a price still, and is no longer shown. */
  readonly retired?: true;
  /** Absent where the list knows none that a row can say. */
  readonly price?: PriceRow;
}
