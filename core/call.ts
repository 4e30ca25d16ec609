import type { IncomingHttpHeaders } from 'node:http';
import type { UpstreamRequest } from './channel.ts';
import type { Codec, Edits, Format, Framing, Operation, RouteParams } from './formats/format.ts';
import { Gate } from './gate.ts';
import type { ChatRequest, ChatSettings, Message } from './model/chat.ts';
import type { Loss } from './model/extra.ts';
import type { JsonObject } from './model/json.ts';
import type { Target } from './routing/target.ts';

/** A typed place for a value that one plugin leaves for others. Make it once, at module level, with {@link callKey}. */
export interface CallKey<T> {
  readonly name: string;
  /** Never set: carries the type. */
  readonly type?: T;
}

/** A new key; `name` shows in error messages. */
export function callKey<T>(name: string): CallKey<T> {
  return { name };
}

/** What came in, before anything was understood. Shared by all views of one call. */
export interface Wire {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Lower-case names. Credentials are removed once they have been read. */
  readonly headers: IncomingHttpHeaders;
  readonly params: RouteParams;
  /** The client's address. */
  readonly ip: string;
  /** The client's own bytes; empty before the body was read. */
  bytes: Buffer;
  /** The parsed body; undefined before it was read. */
  body: JsonObject | undefined;
}

/** What a plugin may change on the way in. Everything that is not named stays the client's. */
export interface CallEdits extends Edits {
  /** Replaces members of the decoded settings. A member beyond `reasoning` and `maxOutput` turns pass-through off. */
  readonly settings?: ChatSettings;
  readonly system?: readonly Message[];
  readonly messages?: readonly Message[];
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
  readonly framing: Framing;
  readonly edits: CallEdits;
  /** The decoded request with all edits made. */
  readonly request: ChatRequest;
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
  /** Runs the job once when the call has ended, however it ended; the returned function takes it back. Cheaper than `signal`. */
  onEnd(job: () => void): () => void;
  with(edits: CallEdits): Call;
  get<T>(key: CallKey<T>): T | undefined;
  set<T>(key: CallKey<T>, value: T): void;
}

/** What all views of one call share. */
export class Exchange {
  readonly gate = new Gate();
  readonly startedAt = performance.now();
  readonly id: string;
  readonly operation: Operation;
  readonly format: Format;
  readonly codec: Codec;
  readonly wire: Wire;
  readonly values = new Map<CallKey<unknown>, unknown>();
  /** The request as the client wrote it, once it was checked. */
  decoded: ChatRequest | undefined;
  model = '';
  stream = false;
  framing: Framing = 'none';
  #controller: AbortController | undefined;
  #ended = false;
  /** What was lost on the way back. */
  readonly losses: Loss[] = [];
  /** Made on first use, as most of what a call may need. */
  #jobs: (() => void)[] | undefined;

  constructor(id: string, operation: Operation, format: Format, codec: Codec, wire: Wire) {
    this.id = id;
    this.operation = operation;
    this.format = format;
    this.codec = codec;
    this.wire = wire;
  }

  /** Made on first use: most calls never wait for anything that must be told. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(ended);
    }
    return this.#controller.signal;
  }

  /** The call is over: whatever still waits for it stops. Every job runs; what the first that failed threw is thrown when all have run. */
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
      const index = jobs.indexOf(job);
      if (index >= 0) jobs.splice(index, 1);
    };
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Something in the reply that the client's format has no place for: for the log, after the headers have gone. */
  reportLoss(loss: Loss): void {
    this.losses.push(loss);
  }

  /** Takes in the body once it was read. */
  understand(bytes: Buffer, body: JsonObject): void {
    const { model, stream } = this.codec.peek(body, this.wire.params);
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
  #request: ChatRequest | undefined;

  constructor(exchange: Exchange, edits: CallEdits) {
    this.#exchange = exchange;
    this.edits = edits;
  }

  get id(): string {
    return this.#exchange.id;
  }
  get startedAt(): number {
    return this.#exchange.startedAt;
  }
  get operation(): Operation {
    return this.#exchange.operation;
  }
  get format(): Format {
    return this.#exchange.format;
  }
  get codec(): Codec {
    return this.#exchange.codec;
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
    return this.#exchange.stream;
  }
  get framing(): Framing {
    return this.#exchange.framing;
  }
  get gate(): Gate {
    return this.#exchange.gate;
  }
  get signal(): AbortSignal {
    return this.#exchange.signal;
  }
  get target(): Target | undefined {
    return this.edits.target;
  }

  get body(): JsonObject {
    const { body } = this.#exchange.wire;
    if (body === undefined)
      throw new Error(
        'The body is read after the identify stage: a plugin of an earlier stage asked for it.',
      );
    return body;
  }

  get patchable(): boolean {
    const { settings, system, messages } = this.edits;
    if (system !== undefined || messages !== undefined) return false;
    if (settings === undefined) return true;
    return Object.keys(settings).every((name) => name === 'reasoning' || name === 'maxOutput');
  }

  get request(): ChatRequest {
    if (this.#request === undefined) {
      const { settings, system, messages } = this.edits;
      const decoded = (this.#exchange.decoded ??= this.codec.decodeRequest(this.body, this.wire.params));
      this.#request = {
        ...decoded,
        model: this.model,
        settings: settings === undefined ? decoded.settings : { ...decoded.settings, ...settings },
        system: system ?? decoded.system,
        messages: messages ?? decoded.messages,
      };
    }
    return this.#request;
  }

  get losses(): readonly Loss[] {
    return this.#exchange.losses;
  }

  onEnd(job: () => void): () => void {
    return this.#exchange.onEnd(job);
  }

  with(edits: CallEdits): Call {
    const settings =
      edits.settings === undefined ? this.edits.settings : { ...this.edits.settings, ...edits.settings };
    return new CallView(this.#exchange, {
      ...this.edits,
      ...edits,
      ...(settings === undefined ? {} : { settings }),
    });
  }

  get<T>(key: CallKey<T>): T | undefined {
    return this.#exchange.values.get(key) as T | undefined;
  }

  set<T>(key: CallKey<T>, value: T): void {
    this.#exchange.values.set(key, value);
  }
}

/** The first view of a call, with no edits. */
export function firstView(exchange: Exchange): Call {
  return new CallView(exchange, {});
}
