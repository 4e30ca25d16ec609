/** Collects the response object from a response of the Responses API, while its events or bytes go to the client. */
import {
  isObject,
  parseObject,
  toGatewayError,
  type GatewayEvent,
  type JsonObject,
  HeldBytes,
  type KeepVerdict,
} from 'sluice';
import { parseSse, type StreamEncoder, type WireFrame } from 'sluice/channel-kit';
import { type Call } from 'sluice/internal';

/** Maximum number of bytes of a whole response that is collected. A larger one reaches the client and is not stored. */
const wholeLimit = 64 * 1024 * 1024;

/** Types of the last event of a stream, which contains the whole response. */
const terminalTypes = ['response.completed', 'response.incomplete', 'response.failed'] as const;
const terminalMarks = terminalTypes.map((type) => Buffer.from(type));

/** Collects the response object as the client gets it. */
export class Recorder {
  readonly #call: Call;
  /** Encoder of its own, which generates the same ids as the client's, because ids are derived from the call. */
  #encoder: StreamEncoder | undefined;
  /** The response object in the newest frame that had one. */
  #newest: JsonObject | undefined;
  #firstFrames: Buffer | undefined;
  #terminal: JsonObject | undefined;
  readonly #chunks = new HeldBytes();
  #length = 0;
  #channel: string | undefined;
  /** True where the provider stores the response, by its own `store` in a decoded response. */
  #keptThere = false;

  /** `call`: the call whose client gets the response. */
  constructor(call: Call) {
    this.#call = call;
  }

  /** Returns the channel whose provider stores the response too, under the same id; undefined where only the gateway does. */
  channelOf(response: JsonObject): string | undefined {
    return (this.#passing ? response.store === true : this.#keptThere) ? this.#channel : undefined;
  }

  /** Adds an event. Throws the errors that the client's encoder will throw. */
  see(event: GatewayEvent): KeepVerdict {
    switch (event.type) {
      case 'request':
      case 'answer':
      case 'loss':
        return 'pass';
      case 'attempt':
        if (event.failure === undefined) this.#channel = event.channel;
        return 'pass';
      case 'frames':
        return this.#frames(event.bytes);
      case 'bytes':
        this.#gather(event.bytes);
        return 'late';
      case 'usage':
        if (this.#passing) return 'pass';
        break;
      case 'head':
        this.#keptThere = saysStored(event.extra?.[this.#call.codec.format]);
        break;
    }
    this.#encoder ??= encoderOf(this.#call);
    this.#look(this.#encoder.event(event));
    return 'pass';
  }

  /** Returns the complete response object. Throws when there is none. */
  response(): JsonObject {
    if (this.#terminal !== undefined) return this.#terminal;
    if (this.#length > wholeLimit) throw new Error('The response is too large to be stored.');
    if (this.#encoder !== undefined) this.#look(this.#encoder.end());
    const response =
      this.#encoder === undefined ? parseObject(this.#chunks.take().toString('utf8')) : this.#newest;
    if (response === undefined) throw new Error('The response has no response object.');
    return response;
  }

  /** Returns the failed response of a stream whose client has seen its id, so that the client can retrieve it; undefined otherwise. */
  failed(error: unknown): JsonObject | undefined {
    if (this.#terminal !== undefined) return this.#terminal;
    if (!this.#call.stream) return undefined;
    if (this.#encoder !== undefined && this.#newest !== undefined)
      this.#look(this.#encoder.error(toGatewayError(error)));
    const seen = this.#firstFrames === undefined ? this.#newest : responseIn(this.#firstFrames, () => true);
    if (seen === undefined || seen.status === 'failed') return seen;
    return { ...seen, status: 'failed', error: failureOf(error) };
  }

  get #passing(): boolean {
    return this.#firstFrames !== undefined || this.#length > 0;
  }

  #look(frames: readonly WireFrame[]): void {
    this.#newest = newestIn(frames) ?? this.#newest;
  }

  #frames(run: Buffer): KeepVerdict {
    this.#firstFrames ??= run;
    if (this.#terminal !== undefined || !terminalMarks.some((mark) => run.includes(mark))) return 'pass';
    this.#terminal = responseIn(run, (type) => terminalTypes.some((one) => one === type));
    return this.#terminal === undefined ? 'pass' : 'keep';
  }

  #gather(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > wholeLimit) this.#chunks.take();
    else this.#chunks.push(chunk);
  }
}

/** Returns the first response object in frames of a wanted type. */
function responseIn(run: Buffer, wanted: (type: string) => boolean): JsonObject | undefined {
  for (const { event, data } of parseSse(run)) {
    const value = parseObject(data);
    const type = value?.type ?? event;
    if (typeof type === 'string' && wanted(type) && isObject(value?.response)) return value.response;
  }
  return undefined;
}

/** Returns true when the provider's own response object, in the head of a decoded response, has `store: true`. */
function saysStored(own: JsonObject | undefined): boolean {
  return isObject(own?.$response) && own.$response.store === true;
}

function encoderOf(call: Call): StreamEncoder {
  const encoder = call.codec.encodeStream?.(call.replyContext());
  if (encoder === undefined) throw new Error('The format has no streams.');
  return encoder;
}

function newestIn(frames: readonly WireFrame[]): JsonObject | undefined {
  for (const frame of frames.toReversed()) {
    if ('json' in frame && isObject(frame.json.response)) return frame.json.response;
  }
  return undefined;
}

/** Returns the response object with which a stream of this call begins, without output, under the id that the gateway generates. */
export function begunResponse(call: Call): JsonObject & { readonly id: string } {
  const head: GatewayEvent = { type: 'head', id: '', model: call.askedModel, created: call.created };
  const begun = newestIn(encoderOf(call).event(head));
  if (typeof begun?.id !== 'string') throw new Error('The format returned a response without an id.');
  return { ...begun, id: begun.id };
}

/** Converts an error into the `error` of a response object. */
export function failureOf(error: unknown): JsonObject {
  const { code, message, origin } = toGatewayError(error);
  if (code === 'rate_limit_exceeded') return { code, message };
  return { code: origin === 'client' ? 'invalid_prompt' : 'server_error', message };
}
