import type { IncomingHttpHeaders } from 'node:http';
import type { Observable } from 'rxjs';
import type { SystemPrompt, UpstreamRequest } from '../sdk/channel.ts';
import type { GatewayError } from '../sdk/errors.ts';
import { checkModelName } from '../formats/_shared/check.ts';
import type { Outline } from '../formats/_shared/outline/index.ts';
import type { Codec, Edits, Format, Framing, Operation, ReplyContext, RouteParams } from '../sdk/format.ts';
import { Gate } from '../sdk/gate.ts';
import type { ChatRequest, ChatSettings, Message } from '../model/chat.ts';
import type { Loss } from '../model/extra.ts';
import type { JsonObject } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';
import { isChat, type GatewayRequest } from '../model/request.ts';
import { withSystemPrompt } from '../routing/system-prompt.ts';
import type { Target } from '../routing/target.ts';
import { checkMemberNames } from '../sdk/member-names.ts';
import { estimateInput, estimateTokens } from '../tokens/index.ts';

/** A typed place for a value that one plugin leaves for others. Make it once, at module level, with {@link callKey}. */
export interface CallKey<T> {
  readonly name: string;
  /** Its number among all keys, from 0. */
  readonly place: number;
  /** Never set: carries the type. */
  readonly type?: T;
}

let keys = 0;

/** A new key; `name` shows in error messages. */
export function callKey<T>(name: string): CallKey<T> {
  const place = keys;
  keys += 1;
  return { name, place };
}

/** What was left under keys. A list, as a call is asked for some thirty of them on its way: a Map would have to search for each. */
export class KeyedValues {
  readonly #values: unknown[] = [];

  get<T>(key: CallKey<T>): T | undefined {
    return this.#values[key.place] as T | undefined;
  }

  set<T>(key: CallKey<T>, value: T): void {
    this.#values[key.place] = value;
  }

  /** Takes over all values of another. */
  copy(other: KeyedValues): void {
    other.#values.forEach((value, place) => {
      this.#values[place] = value;
    });
  }
}

/** The body with everything in it that the client only referred to: left by whoever looked it up, for the encoder of the reply. */
export const expandedBody = callKey<JsonObject>('expanded body');

/** Something that calls hold together, and let go of one by one. */
export interface Held {
  share(): Held;
  letGo(): void;
}

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

/** Where a call must or should go: whoever made what it refers to, or still has it in a cache. */
export interface Affinity {
  /** The channel's id. */
  readonly channel: string;
  /** The id of one of the channel's keys; absent when any of them will do. */
  readonly key?: string;
  /** True: nowhere else. Otherwise it is tried first. */
  readonly only?: boolean;
  /** True: it has something in a cache and nothing that the others lack, so that another may be asked at the same time. */
  readonly warm?: boolean;
}

/** What a plugin may change on the way in. Everything that is not named stays the client's. */
export interface CallEdits extends Edits {
  /** The request as if the client had written this body: checked and decoded anew by the format that reads it. */
  readonly body?: JsonObject;
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
  readonly leftOut: number;
  /** The parsed body. Throws before it was read. */
  readonly body: JsonObject;
  /** The channel and model of this attempt; undefined outside the translate stage. */
  readonly target: Target | undefined;
  /** True when the edits can be made without decoding the request. */
  readonly patchable: boolean;
  readonly gate: Gate;
  /** Aborted when the call has ended, however it ended. */
  readonly signal: AbortSignal;
  /** What the reply lost in the client's format so far; grows while it is written. */
  readonly losses: readonly Loss[];
  /** What an encoder of this call's reply must know; `lose` is told what has no place in it. */
  replyContext(lose?: (path: string) => void): ReplyContext;
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
  /** Runs the job once when the call has ended, however it ended; the returned function takes it back. Cheaper than `signal`. */
  onEnd(job: () => void): () => void;
  /**
   * Ends the call from outside of its stream, at any time: the client is told the error in its format, and everything up to the provider's
   * socket is let go of. Nothing happens to a call that has ended.
   */
  fail(error: GatewayError): void;
  /** What the call was ended with by {@link fail}. */
  readonly failure: GatewayError | undefined;
  with(edits: CallEdits): Call;
  get<T>(key: CallKey<T>): T | undefined;
  set<T>(key: CallKey<T>, value: T): void;
}

/** How long something lasts, and what is to be done when it is over. */
class Lifetime {
  #controller: AbortController | undefined;
  #ended = false;
  /** Made on first use, as most of what a call may need. */
  #jobs: (() => void)[] | undefined;

  /** Made on first use: most calls never wait for anything that must be told. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(ended);
    }
    return this.#controller.signal;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** It is over: whatever still waits for it stops. Every job runs; what the first that failed threw is thrown when all have run. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const jobs = this.#jobs;
    this.#jobs = undefined;
    let failure: { readonly error: unknown } | undefined;
    if (jobs !== undefined) {
      for (const job of jobs) {
        try {
          job();
        } catch (error) {
          failure ??= { error };
        }
      }
    }
    this.#controller?.abort(ended);
    if (failure !== undefined) throw failure.error;
  }

  onEnd(job: () => void): () => void {
    if (this.#ended) {
      job();
      return () => {};
    }
    const jobs = (this.#jobs ??= []);
    jobs.push(job);
    return () => {
      // While they are being run the list is not touched: the next one would be skipped.
      if (this.#jobs !== jobs) return;
      const index = jobs.lastIndexOf(job);
      if (index === jobs.length - 1) jobs.pop();
      else if (index >= 0) jobs.splice(index, 1);
    };
  }
}

/** One try of a call: over when it is given up, or with the call. */
class AttemptLifetime extends Lifetime {
  readonly #forget: (() => void) | undefined;

  constructor(whole: Lifetime) {
    super();
    this.#forget = whole.onEnd(() => this.end());
  }

  override end(): void {
    this.#forget?.();
    super.end();
  }
}

/** What all views of one call share. */
export class Exchange extends Lifetime {
  readonly gate = new Gate();
  readonly startedAt = performance.now();
  readonly created = Math.floor(Date.now() / 1000);
  /** Unix seconds at which the reply was complete; told by the first who asks. */
  completed: number | undefined;
  readonly id: string;
  readonly operation: Operation;
  readonly format: Format;
  readonly codec: Codec;
  readonly wire: Wire;
  readonly values = new KeyedValues();
  /** The request as the client wrote it, once it was checked and somebody wanted it. */
  decoded: GatewayRequest | undefined;
  #outlined: GatewayRequest | undefined;
  /** What the client sends over a WebSocket that passes through. */
  input: Observable<SocketMessage> | undefined;
  #inputGate: Gate | undefined;
  /** What the call was ended with from outside of its stream. */
  failure: GatewayError | undefined;
  /** Whoever writes the reply. Without one there is nobody to tell of a failure. */
  writer: { fail(error: GatewayError): void } | undefined;
  model = '';
  stream = false;
  framing: Framing = 'none';
  #held: Held | undefined;
  /** What was lost on the way back. */
  readonly losses: Loss[] = [];

  constructor(id: string, operation: Operation, format: Format, codec: Codec, wire: Wire) {
    super();
    this.id = id;
    this.operation = operation;
    this.format = format;
    this.codec = codec;
    this.wire = wire;
  }

  /** Made on first use: few calls have a socket. */
  get inputGate(): Gate {
    return (this.#inputGate ??= new Gate());
  }

  /** See {@link Call.fail}. */
  fail(error: GatewayError): void {
    if (this.hasEnded || this.failure !== undefined) return;
    this.failure = error;
    if (this.writer === undefined) this.end();
    else this.writer.fail(error);
  }

  /** What was checked of a long request: the same without its long texts. Undefined for others. */
  get outlined(): GatewayRequest | undefined {
    const { outline, params } = this.wire;
    if (outline === undefined) return undefined;
    return (this.#outlined ??= this.codec.validate(JSON.parse(outline.text) as JsonObject, params));
  }
  set outlined(request: GatewayRequest | undefined) {
    this.#outlined = request;
  }

  /** An exchange of the same request whose life is its own. */
  twin(stream: boolean): Exchange {
    const twin = new Exchange(this.id, this.operation, this.format, this.codec, this.wire);
    twin.values.copy(this.values);
    twin.decoded = this.decoded;
    twin.#outlined = this.#outlined;
    twin.model = this.model;
    twin.stream = stream;
    twin.framing = this.framing;
    twin.#held = this.#held?.share();
    return twin;
  }

  /** Holds on to something until the end. Once. */
  hold(held: Held): void {
    if (this.hasEnded) held.letGo();
    else this.#held = held;
  }

  override end(): void {
    this.#held?.letGo();
    this.#held = undefined;
    // A connection may keep its last call for long.
    this.#outlined = undefined;
    super.end();
  }

  /** Something in the reply that the client's format has no place for: for the log, after the headers have gone. */
  reportLoss(loss: Loss): void {
    this.losses.push(loss);
  }

  /** Takes in the body once it was read. Throws 400 for a name that no model can have, in whichever format and wherever it stood. */
  understand(bytes: Buffer, body: JsonObject): void {
    checkMemberNames(body);
    const { model, stream } = this.codec.peek(body, this.wire.params);
    checkModelName(model);
    this.wire.bytes = bytes;
    this.wire.body = body;
    this.model = model;
    this.stream = stream;
    this.framing = stream ? this.codec.clientFraming(body, this.wire.params) : 'none';
  }
}

/** One reason for every abort: an Error per ended call would cost more than the call. */
const ended = new DOMException('The call has ended.', 'AbortError');

class CallView implements Call {
  readonly #exchange: Exchange;
  readonly edits: CallEdits;
  readonly #life: Lifetime;
  #request: GatewayRequest | undefined;

  constructor(exchange: Exchange, edits: CallEdits, life: Lifetime = exchange) {
    this.#exchange = exchange;
    this.edits = edits;
    this.#life = life;
  }

  get id(): string {
    return this.#exchange.id;
  }
  get startedAt(): number {
    return this.#exchange.startedAt;
  }
  get operation(): Operation {
    return this.edits.codec?.operation ?? this.#exchange.operation;
  }
  get format(): Format {
    return this.#exchange.format;
  }
  get codec(): Codec {
    return this.edits.codec ?? this.#exchange.codec;
  }
  get wire(): Wire {
    return this.#exchange.wire;
  }
  get model(): string {
    return this.edits.model ?? this.#exchange.model;
  }
  get askedModel(): string {
    return this.#exchange.model;
  }
  get stream(): boolean {
    return this.edits.codec === undefined ? this.#exchange.stream : this.edits.stream === true;
  }
  get created(): number {
    return this.#exchange.created;
  }
  get framing(): Framing {
    return this.#exchange.framing;
  }
  get gate(): Gate {
    return this.#exchange.gate;
  }
  get signal(): AbortSignal {
    return this.#life.signal;
  }
  get target(): Target | undefined {
    return this.edits.target;
  }

  get body(): JsonObject {
    const body = this.edits.body ?? this.#exchange.wire.body;
    if (body === undefined)
      throw new Error(
        'The body is read after the identify stage: a plugin of an earlier stage asked for it.',
      );
    return body;
  }

  get patchable(): boolean {
    const { settings, system, messages, systemPrompt, codec, decoded } = this.edits;
    if (system !== undefined || messages !== undefined || codec !== undefined || decoded === true)
      return false;
    if (systemPrompt !== undefined) return false;
    if (settings === undefined) return true;
    return Object.keys(settings).every((name) => name === 'reasoning' || name === 'maxOutput');
  }

  get input(): Observable<SocketMessage> | undefined {
    return this.edits.input ?? this.#exchange.input;
  }
  get inputGate(): Gate {
    return this.#exchange.inputGate;
  }

  get request(): GatewayRequest {
    return (this.#request ??= this.#edited(this.#decoded()));
  }

  get outline(): GatewayRequest {
    const outlined = this.#isOutlined ? this.#exchange.outlined : undefined;
    return outlined === undefined ? this.request : this.#edited(outlined);
  }

  get leftOut(): number {
    return this.#isOutlined ? (this.wire.outline?.leftOut ?? 0) : 0;
  }

  /** False where all of the request has been decoded, or is what a plugin wrote. */
  get #isOutlined(): boolean {
    const { body, codec, messages } = this.edits;
    if (body !== undefined || codec !== undefined || messages !== undefined) return false;
    return this.#request === undefined && this.#exchange.decoded === undefined;
  }

  sent(): void {
    this.#exchange.outlined = undefined;
  }

  #edited(decoded: GatewayRequest): GatewayRequest {
    const { settings, system, messages, codec } = this.edits;
    const systemPrompt = codec === undefined ? this.edits.systemPrompt : undefined;
    const edited =
      settings !== undefined ||
      system !== undefined ||
      messages !== undefined ||
      systemPrompt !== undefined ||
      decoded.model !== this.model;
    if (!edited) return decoded;
    if (!isChat(decoded)) return { ...decoded, model: this.model };
    return {
      ...decoded,
      model: this.model,
      settings: settings === undefined ? decoded.settings : { ...decoded.settings, ...settings },
      system:
        systemPrompt === undefined
          ? (system ?? decoded.system)
          : withSystemPrompt(system ?? decoded.system, systemPrompt),
      messages: messages ?? decoded.messages,
    };
  }

  /** As it was written, before edits of its parts. */
  #decoded(): GatewayRequest {
    const { body, codec } = this.edits;
    if (body !== undefined || codec !== undefined)
      return this.codec.decodeRequest(this.body, this.wire.params);
    return (this.#exchange.decoded ??= this.codec.decodeRequest(this.body, this.wire.params));
  }

  get losses(): readonly Loss[] {
    return this.#exchange.losses;
  }

  replyContext(lose: (path: string) => void = () => {}): ReplyContext {
    return new Context(this.#exchange, lose);
  }

  detached(stream = this.#exchange.stream): { readonly call: Call; end(): void } {
    const twin = this.#exchange.twin(stream);
    return { call: new CallView(twin, this.edits), end: () => twin.end() };
  }

  attempt(): { readonly call: Call; end(): void } {
    const life = new AttemptLifetime(this.#life);
    return { call: new CallView(this.#exchange, this.edits, life), end: () => life.end() };
  }

  onEnd(job: () => void): () => void {
    return this.#life.onEnd(job);
  }

  fail(error: GatewayError): void {
    this.#exchange.fail(error);
  }

  get failure(): GatewayError | undefined {
    return this.#exchange.failure;
  }

  with(edits: CallEdits): Call {
    const settings =
      edits.settings === undefined ? this.edits.settings : { ...this.edits.settings, ...edits.settings };
    // Whoever gives new instructions has read those in force, the operator's among them.
    const kept =
      this.edits.systemPrompt === undefined || edits.system === undefined
        ? this.edits
        : withoutPrompt(this.edits);
    return new CallView(
      this.#exchange,
      { ...kept, ...edits, ...(settings === undefined ? {} : { settings }) },
      this.#life,
    );
  }

  get<T>(key: CallKey<T>): T | undefined {
    return this.#exchange.values.get(key);
  }

  set<T>(key: CallKey<T>, value: T): void {
    this.#exchange.values.set(key, value);
  }
}

function withoutPrompt({ systemPrompt: _known, ...others }: CallEdits): CallEdits {
  return others;
}

/** A class because accessors in an object literal give every object a shape of its own, which outlives it: scavenges took ten times as long. */
class Context implements ReplyContext {
  readonly #exchange: Exchange;
  readonly lose: (path: string) => void;

  constructor(exchange: Exchange, lose: (path: string) => void) {
    this.#exchange = exchange;
    this.lose = lose;
  }

  get model(): string {
    return this.#exchange.model;
  }
  get body(): JsonObject {
    return this.#exchange.wire.body ?? {};
  }
  get expanded(): JsonObject | undefined {
    return this.#exchange.values.get(expandedBody);
  }
  get requestId(): string {
    return this.#exchange.id;
  }
  get created(): number {
    return this.#exchange.created;
  }
  get completed(): number {
    return (this.#exchange.completed ??= Math.floor(Date.now() / 1000));
  }
  get inputEstimate(): number {
    const { decoded, wire } = this.#exchange;
    return decoded !== undefined && isChat(decoded)
      ? estimateInput(decoded)
      : estimateTokens(wire.bytes.length);
  }
}

/** What the encoder of an exchange's reply must know; `lose` is told what has no place in it. */
export function replyContext(exchange: Exchange, lose: (path: string) => void): ReplyContext {
  return new Context(exchange, lose);
}

/** The decoded request of a call that is known to be about a chat. Throws for any other. */
export function chatOf(call: Call): ChatRequest {
  const { request } = call;
  if (!isChat(request)) throw new Error(`A call that wants ${call.operation} has no messages.`);
  return request;
}

/** The same without its long texts, see {@link Call.outline}. Throws for a call that is about no chat. */
export function chatOutlineOf(call: Call): ChatRequest {
  const { outline } = call;
  if (!isChat(outline)) throw new Error(`A call that wants ${call.operation} has no messages.`);
  return outline;
}

/** The first view of a call, with no edits. */
export function firstView(exchange: Exchange): Call {
  return new CallView(exchange, {});
}
