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

/** The body with everything in it that the client only referred to: left by whoever looked it up, for the encoder of the reply. */
export const expandedBody = callKey<JsonObject>('expanded body');

/** What came in, before anything was understood. Shared by all views of one call. */
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
  /** The parsed body; undefined before it was read. Members of a long one are parsed when somebody reads them. */
  body: JsonObject | undefined;
  /** What stands in a long body around its long texts. */
  outline?: Omit<Outline, 'body'> | undefined;
}

/** What a plugin may change on the way in. Everything that is not named stays the client's. */
export interface CallEdits extends Edits {
  /** The request as if the client had written this body: checked and decoded anew by the format that reads it. */
  readonly body?: JsonObject;
  /** Members at the top that the provider is sent beside those of the client, where the client has none of the name. `call.body` does not have them. */
  readonly addedMembers?: JsonObject;
  /** Reads the body and decides the operation instead of the client's own codec: for calls that a plugin makes on its way. Their replies come as events. */
  readonly codec?: Codec;
  /** Whether the channel streams its reply to a call with a codec of its own. Default false. */
  readonly stream?: boolean;
  /** The reply must come as events, so that nothing passes through. */
  readonly decoded?: boolean;
  readonly affinity?: Affinity;
  /** What the channel is sent of the client's messages, in their place. */
  readonly input?: Observable<SocketMessage>;
  /** Replaces members of the decoded settings. A member beyond `reasoning` and `maxOutput` turns pass-through off. */
  readonly settings?: ChatSettings;
  readonly system?: readonly Message[];
  readonly messages?: readonly Message[];
  /** Instructions of the channel's operator, beside those of a chat or in their place. Calls with a codec of their own have none. */
  readonly systemPrompt?: SystemPrompt;
  /** Members that the provider refuses: taken out of its request, whether that is translated or passes through. */
  readonly refused?: RefusedMembers;
  /** Where the call goes: set by routing for each attempt. */
  readonly target?: Target;
  /** The request in the channel's words: made by the translate stage. */
  readonly upstream?: UpstreamRequest;
}

/** One request on its way through the pipeline. Immutable but for its keys: `with` makes a view for the plugins behind. */
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
  /** The model in force: what the client asked for, after edits. */
  readonly model: string;
  /** What the client asked for, before edits: replies carry this name. */
  readonly askedModel: string;
  readonly stream: boolean;
  /** Unix seconds: when the request came in. */
  readonly created: number;
  /** The call on whose behalf a plugin makes this one, with `subcall`; undefined for calls of clients. */
  readonly parent: Call | undefined;
  readonly framing: Framing;
  readonly edits: CallEdits;
  /** The decoded request with all edits made; `isChat` tells a chat from the others. */
  readonly request: GatewayRequest;
  /** What the client sends over a WebSocket that passes through, for one subscriber; undefined for every other call. */
  readonly input: Observable<SocketMessage> | undefined;
  /** The valve of {@link input}: whoever sends the messages on shuts it when it can take no more, and the client's socket is not read. */
  readonly inputGate: Gate;
  /**
   * As `request`, but long texts may be left out of it: for whoever asks for turns, blocks, tools, ids, proofs or settings and not for
   * words, at a fraction of the cost.
   */
  readonly outline: GatewayRequest;
  /**
   * The request is on its way: what is known of it by its outline is made anew when somebody asks again. Hundreds of turns that wait for an
   * answer would be copied by each collection of young objects.
   */
  sent(): void;
  /** Bytes of the texts that `outline` does not have, as they were written: no fewer than their words have. */
  readonly omittedBytes: number;
  /** See `Call` of author/call.ts, as for all that stands there. */
  readonly estimatedInput: number;
  texts(): RequestTexts;
  sampleText(text: string, length: number): string;
  /** The parsed body. Throws before it was read. */
  readonly body: JsonObject;
  /** As `body`, but long texts below its top may be left out of it: for whoever looks for types, ids or names. See {@link outline}. */
  readonly bodyOutline: JsonObject;
  /** The channel and model of this attempt; undefined outside the translate stage. */
  readonly target: Target | undefined;
  /** True when the edits can be made without decoding the request. */
  readonly patchable: boolean;
  readonly gate: Gate;
  /** Aborted when the call has ended, however it ended. */
  readonly signal: AbortSignal;
  /** What the reply lost in the client's format so far; grows while it is written. */
  readonly losses: readonly Loss[];
  /** What an encoder of this call's reply must know; `drop` is told what has no place in it. */
  replyContext(drop?: (path: string) => void): ReplyContext;
  /**
   * The same call with a life of its own: it goes on when the client has left, and nobody's slow reading holds it up. Whoever asks for
   * it ends it. `stream` asks the provider for a stream where the client wants none, so that a long answer is never silent.
   */
  detached(stream?: boolean): { readonly call: Call; end(): void };
  /**
   * The same call for one try of it, which can be given up while the call goes on: `signal` and `onEnd` of this view fire then, or when
   * the call ends. Whoever asks for it calls `end` once, also after an answer that was read to its end.
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
   * Ends the call from outside of its stream, at any time: the client is told the error in its format, and everything up to the provider's
   * socket is let go of. Nothing happens to a call that has ended.
   */
  fail(error: GatewayError): void;
  /** What the call has reserved, used and cost, and how it ended: see `accountOf`. */
  readonly account: CallAccount;
  readonly progress: CallProgress;
  onOutcome(job: (outcome: CallOutcome) => void): void;
  onSettled(job: (settled: SettledCall) => void): void;
  readonly response: CallResponse;
  afterwards(job: () => void): void;
  onUsedTokens(job: (tokens: number | undefined) => void): void;
  /** What the call was ended with by {@link fail}. */
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
  /** Members of bodies by which the provider chooses models by itself, in the spelling of `foldName`. */
  readonly routingFields?: ReadonlySet<string>;
  /** False: what its provider refuses of a request is not left out of the next ones. See `ChannelOptions.learn`. */
  readonly learns?: false;
  /** The provider to which credentials of clients are forwarded, told apart from others. Absent: the channel has keys of its own, or needs none. */
  readonly forwards?: string;
  /** Addresses of storage that requests may name: see `ChannelOptions.mayRead` and `mayWrite`. Absent: none. */
  readonly mayRead?: readonly string[];
  readonly mayWrite?: readonly string[];
  /** For each operation the formats spoken, best first. An operation that is absent is answered 503. */
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /** What the provider keeps, by the format whose API that belongs to: see `ChannelParts.keeps`. */
  readonly keeps?: Readonly<Record<string, readonly string[]>>;
  /** What the requests of a batch cost, as a share of what they cost by themselves: see `ChannelParts.batchShare`. */
  readonly batchShare?: number;
  /** Where a batch names its model: see `ChannelParts.batchModel`. */
  readonly batchModel?: string;
  /** The provider's name for a public model name; undefined when this channel does not serve it. */
  upstreamModel(model: string): string | undefined;
  /**
   * Public names that are known to be served now: those of `models`, and behind its patterns what the list of known models and the provider
   * itself name. The same array until something changes. Absent: the exact names of `models`.
   */
  listed?(): readonly string[];
  /** What one of the provider's models costs, as far as it is known without the config's `prices`. */
  priceOf?(upstreamModel: string): KnownPrice | undefined;
  /** Changes, as an object of its own, whenever what `priceOf` returns may have changed. Absent: it never does. */
  pricesAsOf?(): object | undefined;
  /** See `ChannelParts.statedCost`. */
  statedCost?(usage: JsonObject): number | undefined;
  /** What each use of a service costs in dollars that the provider runs for a model, by its name, as far as it is known without the config. */
  servicePrices?(upstreamModel: string): Readonly<Record<string, number>> | undefined;
  traits(upstreamModel: string): ModelTraits;
  /**
   * What the list of known models says of one. It may be out of date: it is shown, and of several channels of one rank those are asked first
   * of which it does not say that they cannot do what is asked. No call is refused or changed by it. Its limits are among the `traits`.
   */
  known?(upstreamModel: string): Omit<KnownModel, 'price'> | undefined;
  /**
   * Sends the request. Resolves when status and headers are there, whatever the status; rejects with GatewayError when there is no answer.
   * Reads the socket no faster than `call.gate` allows and lets go of it when `call.signal` aborts. `call.target.key` says which key to use.
   */
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /**
   * Answers a chat in events, in place of `open`: `answer` first, with the status that the provider gave, then the reply. Absent where the
   * channel gives bytes.
   */
  events?(call: Call, request: UpstreamRequest): Observable<GatewayEvent>;
  /**
   * Opens a WebSocket to the provider and sends what `call.input` says. Resolves when it is open, with the messages that come as
   * `message` events; rejects with GatewayError when it is refused. Absent where there is none.
   */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
  /** Asks the provider for its own model names: see `ChannelParts.listModels`. */
  listModels?(): Promise<readonly unknown[]>;
  /** Watches one session for what the provider charges besides the answers that `answers` watches. Absent where it charges for these alone. */
  watch?(answers: SessionWatch): SessionWatch;
  close(): Promise<void>;
}

/**
 * The decoded request of a call that is known to be about a chat. Throws for any other.
 *
 * @example
 * const turns = chatOf(call).messages.length;
 */
export function chatOf(call: Pick<Call, 'request' | 'operation'>): ChatRequest {
  const { request } = call;
  if (!isChat(request)) throw new Error(`A call that wants ${call.operation} has no messages.`);
  return request;
}

/**
 * The same without its long texts, see {@link Call.outline}. Throws for a call that is about no chat.
 *
 * @example
 * const tools = chatOutlineOf(call).tools.length;
 */
export function chatOutlineOf(call: Pick<Call, 'outline' | 'operation'>): ChatRequest {
  const { outline } = call;
  if (!isChat(outline)) throw new Error(`A call that wants ${call.operation} has no messages.`);
  return outline;
}
