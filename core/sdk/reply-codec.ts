/** What codecs are made of that read and write replies. */
import type { GatewayError } from './errors.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { Usage } from '../model/usage.ts';

/** How frames stand on the wire. `event-stream`: binary messages, for clients alone. `none`: one JSON document. */
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
  /** The stream has ended. Closes open blocks when the reply was complete; throws `upstream_cut` when it was not. */
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
  /** The reply is complete: what still has to be said (closing frames, usage, terminator). Legal also when nothing came. */
  end(): readonly WireFrame[];
  /** The reply broke after it began: the format's in-stream error, which is then the last frame. */
  error(error: GatewayError): readonly WireFrame[];
  /** Told, before an error is to be written, what passed last of a stream that was not written here: frames may be numbered. */
  passed?(frames: Buffer): void;
  /** Something harmless to say in a long silence; empty where the framing's own way (comment, newline) is meant. */
  keepAlive(): readonly WireFrame[];
}

/** Puts frames of one reply together into the whole reply of the same format. */
export interface FrameFold {
  frame(frame: WireFrame): void;
  end(): JsonObject;
}

/**
 * What an encoder of replies knows of the request.
 *
 * @example
 * encodeStream: ({ model, requestId }: ReplyContext) => new AcmeEncoder(model, requestId),
 */
export interface ReplyContext {
  /** The name the client asked for: replies carry it as their `model`. */
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
  /** Something in the reply that this format has no place for. */
  lose(path: string): void;
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

/** A whole reply that is not JSON. */
export interface PlainReply {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** Gathers the events of one reply; `end` gives the body, or throws when there was no reply to speak of. */
export interface WholeEncoder {
  event(event: GatewayEvent): void;
  end(): JsonObject;
  /** Asked before `end`, which is not called when this gives the reply: it is no JSON. */
  plain?(): PlainReply | undefined;
}

/** Watches one reply for usage; remembers what earlier frames said. */
export interface UsageTap {
  /** `data` is the text of a frame, or of a whole body. Undefined when it carries no usage. */
  read(data: string): Usage | undefined;
}
