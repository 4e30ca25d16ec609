/** The internal type of a call, its edits, its target and its channel. `author/call.ts` has the part that authors of plugins see. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Observable } from 'rxjs';
import type {
  SystemPrompt,
  UpstreamRequest,
  ChannelKey,
  KnownPrice,
  KnownModel,
  Upstream,
} from './channel.ts';
import type { Affinity } from './affinity.ts';
import type { CallAccount } from './account.ts';
import type { RequestTexts } from './author/call.ts';
import type { CallOutcome, CallProgress, CallResponse, SettledCall } from './author/outcome.ts';
import type { GatewayError } from './errors.ts';
import type {
  Codec,
  Edits,
  Format,
  Framing,
  Operation,
  ReplyContext,
  RouteParams,
  Codecs,
  SessionWatch,
} from './format.ts';
import { Gate } from './gate.ts';
import type { ChatRequest, ChatSettings, Message } from '../model/chat.ts';
import type { Loss } from '../model/extra.ts';
import type { JsonObject } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';
import type { RefusedMembers } from '../model/refused-member.ts';
import { isChat, type GatewayRequest } from '../model/request.ts';
import { callKey, type CallKey } from './call-key.ts';
import type { ModelTraits } from '../model/traits.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Outline } from '../json/outline/outline.ts';

/** The body with the stored content that the client only referred to: set by the plugin that looked it up, for the encoder of the response. */
export const expandedBody = callKey<JsonObject>('expanded body');

/** The client's request before it is decoded. Shared by all views of one call. */
export interface Wire {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. Credentials are removed once they have been read. */
  readonly headers: IncomingHttpHeaders;
  params: RouteParams;
  /** The client's address. */
  readonly ip: string;
  /** The client's own bytes; empty before the body was read. */
  bytes: Buffer;
  /** The parsed body; undefined before it was read. Members of a long body are parsed when they are read. */
  body: JsonObject | undefined;
  /** Outline of a long body: its JSON without the long texts. */
  outline?: Omit<Outline, 'body'> | undefined;
}

/** Changes that a plugin may make to a request. Members that are absent stay as the client sent them. */
export interface CallEdits extends Edits {
  /** The request as if the client had written this body: checked and decoded anew by the format that reads it. */
  readonly body?: JsonObject;
  /** Members at the top that the provider is sent beside those of the client, where the client has none of the name. `call.body` does not have them. */
  readonly addedMembers?: JsonObject;
  /** Reads the body and decides the operation instead of the client's own codec: for calls that a plugin makes on its way. Their replies come as events. */
  readonly codec?: Codec;
  /** True: the channel streams its response to a call with a codec of its own. Default false. */
  readonly stream?: boolean;
  /** The reply must come as events, so that nothing passes through. */
  readonly decoded?: boolean;
  readonly affinity?: Affinity;
  /** Messages that the channel is sent in place of the client's. */
  readonly input?: Observable<SocketMessage>;
  /** Replaces members of the decoded settings. A member beyond `reasoning` and `maxOutput` turns pass-through off. */
  readonly settings?: ChatSettings;
  readonly system?: readonly Message[];
  readonly messages?: readonly Message[];
  /** Instructions of the channel's operator, beside those of a chat or in their place. Calls with a codec of their own have none. */
  readonly systemPrompt?: SystemPrompt;
  /** Members that the provider refuses: taken out of its request, whether that is translated or passes through. */
  readonly refused?: RefusedMembers;
  /** Target of the attempt: set by routing. */
  readonly target?: Target;
  /** The request in a format of the channel: made by the translate stage. */
  readonly upstream?: UpstreamRequest;
}

/** One request on its way through the pipeline. Immutable except for its keys: `with` makes a view for the plugins behind. */
export interface Call {
  /** `req_…`: in the log, in `x-request-id`, in error bodies. */
  readonly id: string;
  /** `performance.now()` when the request came in. */
  readonly startedAt: number;
  readonly operation: Operation;
  /** The client's format. */
  readonly format: Format;
  readonly codec: Codec;
  readonly wire: Wire;
  /** The requested model after edits. */
  readonly model: string;
  /** The model that the client requested. Responses have this name. */
  readonly askedModel: string;
  readonly stream: boolean;
  /** Time of the request in Unix seconds. */
  readonly created: number;
  /** The call on whose behalf a plugin makes this one, with `subcall`; undefined for calls of clients. */
  readonly parent: Call | undefined;
  readonly framing: Framing;
  readonly edits: CallEdits;
  /** The decoded request with all edits. `isChat` narrows it to a chat. */
  readonly request: GatewayRequest;
  /** Messages of the client over a WebSocket that passes through, for one subscriber; undefined for every other call. */
  readonly input: Observable<SocketMessage> | undefined;
  /** Gate of {@link input}: closed by the channel that forwards the messages while it can take no more. The client's socket is not read then. */
  readonly inputGate: Gate;
  /**
   * As `request`, but long texts may be left out: for code that needs turns, blocks, tools, ids, signatures or settings and no texts, at a
   * fraction of the cost.
   */
  readonly outline: GatewayRequest;
  /**
   * Called when the request was sent: drops what was decoded from the outline, which is decoded again on demand. Otherwise each minor garbage
   * collection would copy hundreds of turns while the call waits for a response.
   */
  sent(): void;
  /** Bytes of the texts that `outline` does not have, as encoded in JSON: at least as many as the texts themselves have. */
  readonly omittedBytes: number;
  /** See `Call` of author/call.ts, as for all members without a comment here. */
  readonly estimatedInput: number;
  texts(): RequestTexts;
  sampleText(text: string, length: number): string;
  /** The parsed body. Throws before it was read. */
  readonly body: JsonObject;
  /** As `body`, but long texts below its top may be left out: for code that needs types, ids or names. See {@link outline}. */
  readonly bodyOutline: JsonObject;
  /** The channel and model of this attempt; undefined outside the translate stage. */
  readonly target: Target | undefined;
  /** True when the edits can be made without decoding the request. */
  readonly patchable: boolean;
  readonly gate: Gate;
  /** Aborted when the call has ended, however it ended. */
  readonly signal: AbortSignal;
  /** Fields of the response that the client's format could not carry so far; grows while the response is written. */
  readonly losses: readonly Loss[];
  /** Returns the context for encoders of the response. They call `drop` with fields that the format cannot carry. */
  replyContext(drop?: (path: string) => void): ReplyContext;
  /**
   * Returns the same call with its own lifetime: it continues when the client has left, and a slow client does not hold it back. The caller
   * ends it. `stream` requests a stream from the provider where the client wants none, so that a long response is never silent.
   */
  detached(stream?: boolean): { readonly call: Call; end(): void };
  /**
   * Returns the same call for one attempt, which can be abandoned while the call continues: `signal` and `onEnd` of this view fire then, or
   * when the call ends. The caller calls `end` once, also after a response that was read to its end.
   */
  attempt(): { readonly call: Call; end(): void };
  /** True when the call has ended, however it ended. Cheaper than `signal.aborted`. */
  readonly hasEnded: boolean;
  /**
   * Runs the job once when the call has ended, however it ended; the returned function takes it back. Cheaper than `signal`. When the call
   * has ended already, the job runs at once, before there is anything to take it back with.
   */
  onEnd(job: () => void): () => void;
  /**
   * Ends the call from outside of its stream, at any time: sends the error to the client in its format, and releases everything up to the
   * provider's socket. Does nothing to a call that has ended.
   */
  fail(error: GatewayError): void;
  /** Account of the call: its reservation, usage, cost and end. See `accountOf`. */
  readonly account: CallAccount;
  readonly progress: CallProgress;
  onOutcome(job: (outcome: CallOutcome) => void): void;
  onSettled(job: (settled: SettledCall) => void): void;
  readonly response: CallResponse;
  afterwards(job: () => void): void;
  onUsedTokens(job: (tokens: number | undefined) => void): void;
  /** The error with which {@link fail} ended the call. */
  readonly failure: GatewayError | undefined;
  with(edits: CallEdits): Call;
  get<T>(key: CallKey<T>): T | undefined;
  set<T>(key: CallKey<T>, value: T): void;
}

/** One way to serve a call: a channel, one of its keys, and the model's name there. */
export interface Target {
  readonly channel: Channel;
  readonly key: ChannelKey;
  readonly model: string;
  readonly traits: ModelTraits;
}

/** One configured connection to a provider that serves models. Made from a channel kind by an entry of the config. */
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
  /** Members of bodies by which the provider itself chooses models, in the spelling of `foldName`. */
  readonly routingFields?: ReadonlySet<string>;
  /** False: parameters that the provider rejects are not omitted in later requests. See `ChannelOptions.learn`. */
  readonly learns?: false;
  /** Identity of the provider to which credentials of clients are forwarded. Absent: the channel has its own keys, or needs none. */
  readonly forwards?: string;
  /** Addresses of storage that requests may name: see `ChannelOptions.mayRead` and `mayWrite`. Absent: none. */
  readonly mayRead?: readonly string[];
  readonly mayWrite?: readonly string[];
  /** For each operation the formats spoken, best first. An operation that is absent is answered 503. */
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /** Objects that the provider stores, by the format of their API: see `ChannelParts.keeps`. */
  readonly keeps?: Readonly<Record<string, readonly string[]>>;
  /** Price of requests in a batch, as a share of the normal price: see `ChannelParts.batchShare`. */
  readonly batchShare?: number;
  /** Path of the model in a batch: see `ChannelParts.batchModel`. */
  readonly batchModel?: string;
  /** Returns the provider's name for a public model name; undefined when this channel does not serve it. */
  upstreamModel(model: string): string | undefined;
  /**
   * Public names that are known to be served now: those of `models`, and behind its patterns what the list of known models and the provider
   * itself name. The same array until something changes. Absent: the exact names of `models`.
   */
  listed?(): readonly string[];
  /** Returns the price of one of the provider's models, as far as it is known without the config's `prices`. */
  priceOf?(upstreamModel: string): KnownPrice | undefined;
  /** Returns another object whenever the results of `priceOf` may have changed. Absent: they never change. */
  pricesAsOf?(): object | undefined;
  /** See `ChannelParts.statedCost`. */
  statedCost?(usage: JsonObject): number | undefined;
  /** Returns the prices in dollars of each use of a service that the provider runs for a model, as far as they are known without the config. */
  servicePrices?(upstreamModel: string): Readonly<Record<string, number>> | undefined;
  traits(upstreamModel: string): ModelTraits;
  /**
   * Returns the entry of the list of known models for a model. It may be out of date: it is shown, and channels of one rank whose model cannot
   * do what is requested according to it are tried last. No call is refused or changed by it. Its limits are among the `traits`.
   */
  known?(upstreamModel: string): Omit<KnownModel, 'price'> | undefined;
  /**
   * Sends the request. Resolves when status and headers are there, whatever the status; rejects with GatewayError when there is no answer.
   * Applies backpressure by `call.gate`, and releases the socket when `call.signal` aborts. `call.target.key` is the key to use.
   */
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /**
   * Answers a chat in events, in place of `open`: `answer` first, with the status that the provider gave, then the reply. Absent where the
   * channel gives bytes.
   */
  events?(call: Call, request: UpstreamRequest): Observable<GatewayEvent>;
  /**
   * Opens a WebSocket to the provider and sends the messages of `call.input`. Resolves when it is open, with the messages that come as
   * `message` events; rejects with GatewayError when it is refused. Absent where there is none.
   */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
  /** Requests the provider's own model names: see `ChannelParts.listModels`. */
  listModels?(): Promise<readonly unknown[]>;
  /** Watches one session for what the provider charges besides the answers that `answers` watches. Absent where it charges for these alone. */
  watch?(answers: SessionWatch): SessionWatch;
  close(): Promise<void>;
}

/**
 * Returns the decoded request of a call that is known to be about a chat. Throws for any other.
 *
 * @example
 * const turns = chatOf(call).messages.length;
 */
export function chatOf(call: Pick<Call, 'request' | 'operation'>): ChatRequest {
  const { request } = call;
  if (!isChat(request)) throw new Error(`A call of the operation ${call.operation} has no messages.`);
  return request;
}

/**
 * Returns the same without its long texts, see {@link Call.outline}. Throws for a call that is about no chat.
 *
 * @example
 * const tools = chatOutlineOf(call).tools.length;
 */
export function chatOutlineOf(call: Pick<Call, 'outline' | 'operation'>): ChatRequest {
  const { outline } = call;
  if (!isChat(outline)) throw new Error(`A call of the operation ${call.operation} has no messages.`);
  return outline;
}
