/** Parts of codecs that decode and encode replies. */
import type { GatewayError } from './errors.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { Usage } from '../model/usage.ts';

/**
 * Framing of a stream. `event-stream`: binary messages, for clients only. `none`: one JSON document.
 *
 * @example
 * const upstreamFraming: Framing = 'sse';
 */
export type Framing = 'sse' | 'ndjson' | 'json-array' | 'event-stream' | 'none';

/**
 * One frame of a stream, parsed off its framing: what follows `event:` and `data:`, one line, or one element of an array.
 *
 * @example
 * const frame: Frame = { event: 'delta', data: '{"text":"Hi"}' };
 */
export interface Frame {
  readonly event?: string;
  readonly data: string;
}

/**
 * One frame to be written. `json` is written on one line; `text` as it is (`[DONE]`).
 *
 * @example
 * const frame: WireFrame = { event: 'delta', json: { text: 'Hi' } };
 */
export type WireFrame =
  | { readonly event?: string; readonly json: JsonObject }
  | { readonly event?: string; readonly text: string };

/**
 * Turns the frames of a provider into events. Holds the state of one reply.
 *
 * @example
 * decodeStream: (): StreamDecoder => ({
 *   frame: (frame) => eventsOf(readFrame(frame)),
 *   end: () => [],
 * }),
 */
export interface StreamDecoder {
  /** Throws GatewayError (origin upstream) when the frame is an error or garbage. */
  frame(frame: Frame): readonly GatewayEvent[];
  /** Called at the end of the stream. Closes open blocks when the response was complete; throws `upstream_cut` when it was not. */
  end(): readonly GatewayEvent[];
}

/**
 * Turns events into the client's frames: a state machine that cannot emit an illegal sequence. Holds the state of one reply.
 *
 * @example
 * encodeStream: (context): StreamEncoder => new AcmeEncoder(context),
 */
export interface StreamEncoder {
  /** Ignores events that are not for clients (`request`, `attempt`, `loss`, `frames`, `bytes`). */
  event(event: GatewayEvent): readonly WireFrame[];
  /** Returns the last frames of a complete response (closing frames, usage, terminator), also when no event came before. */
  end(): readonly WireFrame[];
  /** Returns the format's error frame for a response that failed after it had begun. It is the last frame. */
  error(error: GatewayError): readonly WireFrame[];
  /** Called before `error` for a stream that passed through, with its last bytes, because frames may be numbered. */
  passed?(frames: Buffer): void;
  /** Returns frames that keep a silent connection open; empty where the framing has its own way (comment, newline). */
  keepAlive(): readonly WireFrame[];
}

/** Puts frames of one reply together into the whole reply of the same format. */
export interface FrameFold {
  frame(frame: WireFrame): void;
  end(): JsonObject;
}

/**
 * Facts about the request, for encoders of responses.
 *
 * @example
 * encodeStream: ({ model, requestId }: ReplyContext) => new AcmeEncoder(model, requestId),
 */
export interface ReplyContext {
  /** The requested name, which responses have as their `model`. */
  readonly model: string;
  /** The client's own request body. */
  readonly body: JsonObject;
  /** The body with everything in it that the client only referred to (earlier turns); absent when that is all the same. */
  readonly expanded?: JsonObject | undefined;
  /** The request's id, for formats that show it. */
  readonly requestId: string;
  /** Unix seconds for replies whose upstream gave no time. */
  readonly created: number;
  /** Unix seconds at which the reply was complete: the same for all who write it, whoever asks first. Absent: whenever it is asked for. */
  readonly completed?: number;
  /** Estimated input tokens for formats that must say a number first; 0 when unknown. */
  readonly inputEstimate: number;
  /** Reports a field of the response that this format does not support. */
  drop(path: string): void;
}

/**
 * Turns the bytes of a reply that is no JSON into events. Holds the state of one reply.
 *
 * @example
 * decodeBytes: (): BytesDecoder => ({ chunk: (bytes) => [{ type: 'bytes', bytes }], end: () => [] }),
 */
export interface BytesDecoder {
  chunk(bytes: Buffer): readonly GatewayEvent[];
  end(): readonly GatewayEvent[];
}

/** A whole response that is not JSON. */
export interface PlainReply {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * Collects the events of one response and returns its body. `end` throws when the response is incomplete.
 *
 * @example
 * encodeWhole(): WholeEncoder {
 *   let text = '';
 *   return {
 *     event: (event) => void (text += event.type === 'text-delta' ? event.text : ''),
 *     end: () => ({ text }),
 *   };
 * },
 */
export interface WholeEncoder {
  event(event: GatewayEvent): void;
  end(): JsonObject;
  /** Called before `end`. Returns a response that is not JSON; `end` is not called then. */
  plain?(): PlainReply | undefined;
}

/**
 * Reads usage from one response that passes through. It may keep state from one frame to the next.
 *
 * @example
 * usageTap: (): UsageTap => ({
 *   read(data) {
 *     const usage = parseObject(data)?.usage;
 *     return isObject(usage) ? readTokenUsage(usage, 'acme') : undefined;
 *   },
 * }),
 */
export interface UsageTap {
  /** `data` is the text of a frame, or of a whole body. Undefined when it carries no usage. */
  read(data: string): Usage | undefined;
}
