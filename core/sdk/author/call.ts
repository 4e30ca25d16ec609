/** Public types of a call as plugins and channels see it: the raw request, the decoded request, edits, target and callbacks. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Observable } from 'rxjs';
import type { Affinity } from '../affinity.ts';
import type { CallKey } from '../call-key.ts';
import type { Format, Operation } from '../format.ts';
import type { CallOutcome, CallProgress, CallResponse, SettledCall } from './outcome.ts';
import type { ChatSettings, Message } from '../../model/chat.ts';
import type { Codec } from '../codec.ts';
import type { JsonObject } from '../../model/json.ts';
import type { RefusedMembers } from '../../model/refused-member.ts';
import type { SocketMessage } from '../../model/realtime.ts';
import type { GatewayRequest } from '../../model/request.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { ChannelKey } from '../channel.ts';
import type { GatewayError } from '../errors.ts';
import type { Gate } from '../gate.ts';

/**
 * The client's HTTP request, before it is decoded.
 *
 * @example
 * const team = call.wire.headers['x-team'];
 */
export interface Wire {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. Credentials are removed once they have been read. */
  readonly headers: IncomingHttpHeaders;
  /** The client's address. */
  readonly ip: string;
  /** The client's own bytes; empty before the body was read. */
  readonly bytes: Buffer;
  /** The parsed body as the client sent it, without edits; undefined before it was read. */
  readonly body: JsonObject | undefined;
}

/**
 * Target of a call: a channel, one of its keys, and the provider's name of the model.
 *
 * @example
 * const [best] = tools.catalog.targets('gpt-5-mini');
 */
export interface Target {
  readonly channel: {
    /** The channel's name in this gateway. */
    readonly id: string;
    /** The name of its kind. */
    readonly kind: string;
    /** Public names of models and `*` patterns that it serves. */
    readonly models: readonly string[];
    /** For each operation the formats spoken, best first. */
    readonly speaks: { readonly [O in Operation]?: readonly string[] };
    /** At least one, also where there is no key. */
    readonly keys: readonly ChannelKey[];
    /** False: what the provider refuses of a request is not left out of the next ones. See `ChannelOptions.learn`. */
    readonly learns?: false;
  };
  readonly key: ChannelKey;
  readonly model: string;
  /** Traits of the model at this channel. */
  readonly traits: ModelTraits;
}

/**
 * A request whose long texts are read on demand: `call.texts()` returns it.
 *
 * @example
 * const { request, read } = call.texts();
 * const last = isChat(request) ? request.messages.at(-1)?.content[0] : undefined;
 * const words = last?.type === 'text' ? read(last.text) : '';
 */
export interface RequestTexts {
  /** The decoded request. A long text may be replaced by a placeholder: {@link read} returns the text itself. */
  readonly request: GatewayRequest;
  /** Returns the full text for a text of `request`. */
  readonly read: (text: string) => string;
}

/**
 * Changes that a plugin may make to a request. Members that are absent stay as the client sent them.
 *
 * @example
 * return next(call.with({ model: 'gpt-5-mini', settings: { temperature: 0 } }));
 */
export interface CallEdits {
  readonly model?: string;
  /** Replaces members of the decoded settings. A member beyond `reasoning` and `maxOutput` turns pass-through off. */
  readonly settings?: ChatSettings;
  /** The instructions, in place of those in `request.system`. Turns pass-through off. */
  readonly system?: readonly Message[];
  /** The turns, in place of those in `request.messages`. Turns pass-through off. */
  readonly messages?: readonly Message[];
  /** The request as if the client had written this body: checked and decoded anew by the format that reads it. */
  readonly body?: JsonObject;
  /**
   * Codec that reads `body` in place of the client's own, for a chat that a plugin has the channel of the call answer. Its response comes as
   * events. `tools.chatCodec` returns the codec of a format.
   *
   * @example
   * const codec = tools.chatCodec('responses');
   * const summary = codec && (await next(call.with({ codec, body, decoded: true })));
   */
  readonly codec?: Codec;
  /** True: the channel streams its response to a call with a `codec` of its own. Default false. */
  readonly stream?: boolean;
  /** The reply must come as events, so that nothing passes through. */
  readonly decoded?: boolean;
  /** Members that the provider refuses: taken out of its request, whether that is translated or passes through. */
  readonly refused?: RefusedMembers;
  /** The channel, or the key of a channel, that is tried first, or alone. */
  readonly affinity?: Affinity;
  /** Messages that the channel is sent in place of the client's, in a session over a WebSocket. */
  readonly input?: Observable<SocketMessage>;
}

/**
 * View of one request in the pipeline. Immutable except for the values of its call keys. `with` returns a changed view for later plugins.
 *
 * @example
 * if (call.operation !== 'chat' || call.model !== 'auto') return next(call);
 * return next(call.with({ model: 'gpt-5-mini' }));
 */
export interface Call {
  /** Id of the call, `req_…`, as in the log, in `x-request-id` and in error bodies. */
  readonly id: string;
  /** `performance.now()` when the request came in. */
  readonly startedAt: number;
  /** Time of the request in Unix seconds. */
  readonly created: number;
  readonly operation: Operation;
  /**
   * The format of the client: `name` is `chat-completions`, `messages`, `responses` …; `rateHeaders` returns the rate limit headers of the format, if
   * it has any.
   */
  readonly format: Pick<Format, 'name' | 'rateHeaders'>;
  /**
   * Codec of the client's format: `format` is its name, `settingPath('choices')` returns the name of a setting in it, for the `param` of an
   * error, `onlyNative(body)` returns the error for a body that only a channel of this format can serve, and `estimate(request)` returns the
   * expected usage of a request that is no chat.
   */
  readonly codec: Codec;
  readonly wire: Wire;
  /** The requested model after edits. Known from the stage `admit` on. */
  readonly model: string;
  /** The model that the client requested. Responses have this name. */
  readonly askedModel: string;
  readonly stream: boolean;
  /** The call on whose behalf a plugin makes this one, with `tools.subcall`; undefined for calls of clients. */
  readonly parent: Call | undefined;
  /** The parsed body. Throws in `observe` and `identify`, which run before it is read. */
  readonly body: JsonObject;
  /** The decoded request with all edits. `isChat` narrows it to a chat. Throws when `body` throws. */
  readonly request: GatewayRequest;
  /**
   * As `request`, but long texts may be left out: for plugins that need turns, tools, ids or settings and no texts, at a fraction of the
   * cost.
   */
  readonly outline: GatewayRequest;
  /** Estimated input tokens of the request. For a long request the estimate uses the outline and the lengths of the texts. */
  readonly estimatedInput: number;
  /** Returns the request for a plugin that reads some of its texts: each long text is parsed when it is read. */
  texts(): RequestTexts;
  /**
   * Returns the length of a text of `outline`, its first and its last `length` characters, as one string, which differs for
   * most texts. Costs less than reading the text.
   */
  sampleText(text: string, length: number): string;
  /** As `body`, but long texts below its top may be missing. Enough for plugins that look for types, ids or names. */
  readonly bodyOutline: JsonObject;
  /** The changes that plugins before this one have made with {@link with}. */
  readonly edits: CallEdits;
  /** The channel and model of this attempt; undefined outside the translate stage. */
  readonly target: Target | undefined;
  /** Closed (backpressure) while the client reads too slowly, and while `eachInOrder` works. The provider is not read then. */
  readonly gate: Gate;
  /** Messages of the client in a session over a WebSocket, for one subscriber; undefined for every other call. */
  readonly input: Observable<SocketMessage> | undefined;
  /** Closed by the plugin or channel that sends on messages of `input`, while it can take no more. The gateway does not read from the client meanwhile. */
  readonly inputGate: Gate;
  /** Aborted when the call has ended, however it ended. */
  readonly signal: AbortSignal;
  /** True when the call has ended, however it ended. Cheaper than `signal.aborted`. */
  readonly hasEnded: boolean;
  /** The error with which {@link fail} ended the call. */
  readonly failure: GatewayError | undefined;
  /** Runs the job once when the call has ended, however it ended; the returned function takes it back. Cheaper than `signal`. */
  onEnd(job: () => void): () => void;
  /**
   * Ends the call from outside of its stream, at any time: sends the error to the client in its format, and releases everything up to the
   * provider's socket. Does nothing to a call that has ended.
   */
  fail(error: GatewayError): void;
  /**
   * State of the call at this moment. Attempts and times are known when the head of the response is written; usage and cost are known at the
   * end of the response.
   */
  readonly progress: CallProgress;
  /**
   * Runs the callback once, soon after the call has ended and has been charged, with its final state. A call that goes on without its client
   * (a background response) ends when its work is done. Errors that the callback throws are logged. Calls made with `tools.calls` have none.
   */
  onOutcome(job: (outcome: CallOutcome) => void): void;
  /**
   * Runs the callback once, when `onOutcome` does. Its figures are computed when the callback reads them, so that it costs less than
   * `onOutcome`. Use it in a plugin that counts every call.
   *
   * @example
   * call.onSettled(({ response, cost }) => count(response.attempt?.channel ?? '', response.status, cost?.microDollars ?? 0));
   */
  onSettled(job: (settled: SettledCall) => void): void;
  /**
   * Returns a view of the call for requests that can be cancelled while the call continues. `signal` and `onEnd` of the view fire then, or when
   * the call ends. The plugin must call `end` once, also after a response that was read completely.
   *
   * @example
   * const attempt = call.attempt();
   * try {
   *   return await gathered(attempt.call, await next(attempt.call));
   * } finally {
   *   attempt.end();
   * }
   */
  attempt(): { readonly call: Call; end(): void };
  /**
   * Facts about the response. Where a plugin detaches the call they are those of the detached call from then on: take the object before the
   * call is sent for those of the client's response.
   */
  readonly response: CallResponse;
  /** Runs the callback soon, together with the work for other calls that have ended. Errors that the callback throws are logged. */
  afterwards(job: () => void): void;
  /**
   * Runs the callback once, when the figures of the call are final and before it is charged, with the tokens that rate limits count: those
   * that the response reported, else those that are charged. Undefined where neither is known.
   */
  onUsedTokens(job: (tokens: number | undefined) => void): void;
  /** Returns a view of the call with these changes, for the plugins behind. */
  with(edits: CallEdits): Call;
  /** Returns the value that any plugin has set under a key. */
  get<T>(key: CallKey<T>): T | undefined;
  /** Sets a value for other plugins. All views of the call see it. */
  set<T>(key: CallKey<T>, value: T): void;
}
