/** State of one call that all its views share: request, attached values, account, dropped fields and lifetime. */
import type { Observable } from 'rxjs';
import type { GatewayError } from '../sdk/errors.ts';
import { checkModelName } from '../formats/_shared/check.ts';
import type { Codec, Format, Framing, Operation } from '../sdk/format.ts';
import { Gate } from '../sdk/gate.ts';
import type { Loss } from '../model/extra.ts';
import type { JsonObject } from '../model/json.ts';
import type { Outline } from '../json/outline/outline.ts';
import type { SocketMessage } from '../model/realtime.ts';
import { type GatewayRequest } from '../model/request.ts';
import type { Call, Wire } from '../sdk/call.ts';
import { checkMemberNames } from '../sdk/member-names.ts';

import { Account } from '../money/account/index.ts';
import type { CallRecord } from '../money/account/record.ts';
import { warnOfEndError, type EndErrorReporter } from './end-errors.ts';
import { Lifetime } from './lifetime.ts';
import type { CallKey } from '../sdk/call-key.ts';

/** Values attached to a call. An array indexed by key, not a Map, because each call reads about 30 keys. */
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
    other.#values.forEach((value, index) => {
      this.#values[index] = value;
    });
  }
}

/** A resource that several calls share, each of which releases its part. */
export interface Held {
  share(): Held;
  letGo(): void;
}

/** State of one call. */
export class Exchange extends Lifetime {
  readonly gate = new Gate();
  readonly startedAt = performance.now();
  readonly created = Math.floor(Date.now() / 1000);
  /** Unix seconds at which the response was complete; set by the first reader. */
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
  #bodyOutline: JsonObject | undefined;
  /** Messages of the client over a WebSocket that passes through. */
  input: Observable<SocketMessage> | undefined;
  #inputGate: Gate | undefined;
  /** Error that ended the call from outside of its stream. */
  failure: GatewayError | undefined;
  /** Writer of the response, which reports a failure to the client. Absent where nothing is written. */
  writer: { fail(error: GatewayError): void } | undefined;
  /** Receives the errors of callbacks at the end of the call. */
  endErrors: EndErrorReporter = warnOfEndError;
  model = '';
  stream = false;
  framing: Framing = 'none';
  /** The call on whose behalf a plugin makes this one. */
  parent: Call | undefined = undefined;
  #held: Held | undefined;
  /** Dropped fields of the response. */
  readonly losses: Loss[] = [];
  readonly account: Account;
  /** The record of the response of this exchange. */
  readonly #record: CallRecord;

  /** `account`: that of the exchange of which this one is a twin. */
  constructor(id: string, operation: Operation, format: Format, codec: Codec, wire: Wire, account?: Account) {
    super();
    this.account = account ?? new Account(this);
    this.#record = account === undefined ? this.account.record : account.moveTo(this);
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

  /**
   * Keeps the error with which the call's reply is ended, where that did not come out of the reply's own stream: its records then tell the
   * status that the client saw. A client that left is no failure.
   */
  noteFailure(error: GatewayError): void {
    if (this.hasEnded || error.code === 'client_closed_request') return;
    this.failure ??= error;
  }

  /** See {@link Call.fail}. */
  fail(error: GatewayError): void {
    if (this.hasEnded || this.failure !== undefined) return;
    this.failure = error;
    if (this.writer === undefined) this.end();
    else this.writer.fail(error);
  }

  /** Validated long request without its long texts. Undefined for others. */
  get outlined(): GatewayRequest | undefined {
    const { bodyOutline } = this;
    if (bodyOutline === undefined) return undefined;
    return (this.#outlined ??= this.codec.validate(bodyOutline, this.wire.params));
  }

  /** Parsed body of that request, without its long texts. */
  get bodyOutline(): JsonObject | undefined {
    const { outline } = this.wire;
    if (outline === undefined) return undefined;
    return (this.#bodyOutline ??= JSON.parse(outline.text) as JsonObject);
  }

  /** Sets the outline of a long request that was checked. */
  outline({ body, ...outline }: Outline, request: GatewayRequest): void {
    this.wire.outline = outline;
    this.#bodyOutline = body;
    this.#outlined = request;
  }

  /** Drops both. They are built again on the next access. */
  forgetOutline(): void {
    this.#bodyOutline = undefined;
    this.#outlined = undefined;
  }

  /** Returns an exchange of the same request with a lifetime of its own. It owns the account from then on. */
  twin(stream: boolean): Exchange {
    const { id, operation, format, codec, wire, account } = this;
    const twin = new Exchange(id, operation, format, codec, wire, account);
    twin.values.copy(this.values);
    twin.decoded = this.decoded;
    twin.#outlined = this.#outlined;
    twin.#bodyOutline = this.#bodyOutline;
    twin.model = this.model;
    twin.stream = stream;
    twin.framing = this.framing;
    twin.endErrors = this.endErrors;
    twin.#held = this.#held?.share();
    return twin;
  }

  /** Holds a shared resource until the call ends. Called at most once. */
  hold(held: Held): void {
    if (this.hasEnded) held.letGo();
    else this.#held = held;
  }

  override reportEndError(error: unknown): void {
    this.endErrors(error, this.id);
  }

  /** Ends the call: its record first, so that all callbacks see the same end; its account behind all callbacks. */
  override end(): void {
    if (this.hasEnded) return;
    this.#held?.letGo();
    this.#held = undefined;
    // A connection may keep its last call for long.
    this.forgetOutline();
    this.#record.end('left');
    super.end();
    this.account.end(this.#record);
  }

  /** Notes a dropped field of the response for the log, because the headers have been sent. */
  reportLoss(loss: Loss): void {
    this.losses.push(loss);
  }

  /**
   * Sets the body that was read, with the model and the framing that it asks for. Throws 400 for a name that no model can have, in any
   * format and position.
   */
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
