/** A view of a call: its edits, and the request with them. */
import type { Observable } from 'rxjs';
import { AttemptLifetime, type Lifetime } from './lifetime.ts';
import { MarkedTexts } from '../json/outline/marks.ts';
import type { Account } from '../money/account/index.ts';
import type { RequestTexts } from '../sdk/author/call.ts';
import type { CallOutcome, CallProgress, CallResponse, SettledCall } from '../sdk/author/outcome.ts';
import type { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format, Framing, Operation, ReplyContext } from '../sdk/format.ts';
import { Gate } from '../sdk/gate.ts';
import type { Loss } from '../model/extra.ts';
import type { JsonObject } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';
import { isChat, type GatewayRequest } from '../model/request.ts';
import { withSystemPrompt } from '../routing/system-prompt.ts';
import { type Target, type Call, type CallEdits, type Wire } from '../sdk/call.ts';
import { Exchange } from './exchange.ts';
import { CallReplyContext } from './reply-context.ts';
import type { CallKey } from '../sdk/call-key.ts';
import { estimateOutline } from '../tokens/index.ts';

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
  get parent(): Call | undefined {
    return this.#exchange.parent;
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
        'The body is not available yet: it is read after the identify stage. Use it in a plugin of a later stage.',
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

  get estimatedInput(): number {
    const { outline } = this;
    return isChat(outline)
      ? estimateOutline(outline, this.omittedBytes)
      : (this.codec.estimate?.(outline).input ?? 0);
  }

  texts(): RequestTexts {
    const { outline, bytes } = this.wire;
    if (this.omittedBytes === 0 || outline === undefined) return { request: this.outline, read: asItIs };
    const texts = MarkedTexts.of(outline, bytes);
    // Something that the client wrote could be taken for a mark.
    if (texts === undefined) return { request: this.request, read: asItIs };
    return { request: this.outline, read: (text) => texts.restored(text) };
  }

  sampleText(text: string, length: number): string {
    const { outline, bytes } = this.wire;
    const sample =
      this.omittedBytes === 0 || outline === undefined
        ? undefined
        : MarkedTexts.glimpse(text, outline, bytes, length);
    return sample ?? `${text.length}${text.slice(0, length)}${text.slice(-length)}`;
  }

  get omittedBytes(): number {
    return this.#isOutlined ? (this.wire.outline?.leftOut ?? 0) : 0;
  }

  /** False where all of the request has been decoded, or is what a plugin wrote. */
  get #isOutlined(): boolean {
    const { body, codec, messages } = this.edits;
    if (body !== undefined || codec !== undefined || messages !== undefined) return false;
    return this.#request === undefined && this.#exchange.decoded === undefined;
  }

  get bodyOutline(): JsonObject {
    return this.edits.body ?? this.#exchange.bodyOutline ?? this.body;
  }

  sent(): void {
    this.#exchange.forgetOutline();
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

  /** Returns the decoded request, before edits of its parts. */
  #decoded(): GatewayRequest {
    const { body, codec } = this.edits;
    if (body !== undefined || codec !== undefined)
      return this.codec.decodeRequest(this.body, this.wire.params);
    return (this.#exchange.decoded ??= this.codec.decodeRequest(this.body, this.wire.params));
  }

  get losses(): readonly Loss[] {
    return this.#exchange.losses;
  }

  replyContext(drop: (path: string) => void = () => {}): ReplyContext {
    return new CallReplyContext(this.#exchange, drop);
  }

  detached(stream = this.#exchange.stream): { readonly call: Call; end(): void } {
    const twin = this.#exchange.twin(stream);
    return { call: new CallView(twin, this.edits), end: () => twin.end() };
  }

  attempt(): { readonly call: Call; end(): void } {
    const life = new AttemptLifetime(this.#life);
    return { call: new CallView(this.#exchange, this.edits, life), end: () => life.end() };
  }

  get hasEnded(): boolean {
    return this.#life.hasEnded;
  }

  onEnd(job: () => void): () => void {
    return this.#life.onEnd(job);
  }

  get account(): Account {
    return this.#exchange.account;
  }

  get progress(): CallProgress {
    return this.#exchange.account.outcome;
  }

  onOutcome(job: (outcome: CallOutcome) => void): void {
    this.#exchange.account.onOutcome(job);
  }

  onSettled(job: (settled: SettledCall) => void): void {
    this.#exchange.account.onSettled(job);
  }

  get response(): CallResponse {
    return this.#exchange.account.record;
  }

  afterwards(job: () => void): void {
    this.#exchange.account.afterwards(job);
  }

  onUsedTokens(job: (tokens: number | undefined) => void): void {
    this.#exchange.account.onUsedTokens(job);
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
    // Code that sets new instructions has read the current ones, including those of the operator.
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

function asItIs(text: string): string {
  return text;
}

function withoutPrompt({ systemPrompt: _known, ...others }: CallEdits): CallEdits {
  return others;
}

/** Returns the context of the encoder of a response. `drop` reports fields that the format does not support. */
export function replyContext(exchange: Exchange, drop: (path: string) => void): ReplyContext {
  return new CallReplyContext(exchange, drop);
}

/** Returns the first view of a call, with no edits. */
export function firstView(exchange: Exchange): Call {
  return new CallView(exchange, {});
}
