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

/** Largest whole reply that is gathered while it passes, in bytes. A larger one reaches the client and is not kept. */
const wholeLimit = 64 * 1024 * 1024;

/** The last frames of a stream carry the whole response. */
const terminalTypes = ['response.completed', 'response.incomplete', 'response.failed'] as const;
const terminalMarks = terminalTypes.map((type) => Buffer.from(type));

/** A reply as the client sees it, gathered while it goes by. */
export class Recorder {
  readonly #call: Call;
  /** A second one like the client's own: ids are the same for the same call. */
  #encoder: StreamEncoder | undefined;
  /** The response object in the newest frame that had one. */
  #newest: JsonObject | undefined;
  #firstFrames: Buffer | undefined;
  #terminal: JsonObject | undefined;
  readonly #chunks = new HeldBytes();
  #length = 0;
  #channel: string | undefined;
  /** The provider said in a decoded reply that it keeps it. */
  #keptThere = false;

  /** `call` is the one whose client reads the reply. */
  constructor(call: Call) {
    this.#call = call;
  }

  /** The channel whose provider keeps this response too, under the same id and by its own word; undefined when only the gateway does. */
  channelOf(response: JsonObject): string | undefined {
    return (this.#passing ? response.store === true : this.#keptThere) ? this.#channel : undefined;
  }

  /** Takes an event in. Throws what the client's own encoder will throw. */
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

  /** The complete response. Throws when the reply holds none. */
  response(): JsonObject {
    if (this.#terminal !== undefined) return this.#terminal;
    if (this.#length > wholeLimit) throw new Error('The reply is too large to be kept.');
    if (this.#encoder !== undefined) this.#look(this.#encoder.end());
    const response =
      this.#encoder === undefined ? parseObject(this.#chunks.take().toString('utf8')) : this.#newest;
    if (response === undefined) throw new Error('The reply holds no response object.');
    return response;
  }

  /** The response that broke, when the client of a stream has seen its id: it is told later what became of it. */
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

/** The first response object in frames whose type is wanted. */
function responseIn(run: Buffer, wanted: (type: string) => boolean): JsonObject | undefined {
  for (const { event, data } of parseSse(run)) {
    const value = parseObject(data);
    const type = value?.type ?? event;
    if (typeof type === 'string' && wanted(type) && isObject(value?.response)) return value.response;
  }
  return undefined;
}

/** A provider's own response object travels in the head of a decoded reply, where the provider speaks the client's format. */
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

/** The response object with which a stream of this call begins: what was asked for, and no answer yet. Its id is the one the gateway gives. */
export function begunResponse(call: Call): JsonObject & { readonly id: string } {
  const head: GatewayEvent = { type: 'head', id: '', model: call.askedModel, created: call.created };
  const begun = newestIn(encoderOf(call).event(head));
  if (typeof begun?.id !== 'string') throw new Error('The format gave a response that has no id.');
  return { ...begun, id: begun.id };
}

/** A failure as the `error` of a response object. */
export function failureOf(error: unknown): JsonObject {
  const { code, message, origin } = toGatewayError(error);
  if (code === 'rate_limit_exceeded') return { code, message };
  return { code: origin === 'client' ? 'invalid_prompt' : 'server_error', message };
}
