/** Frames the events of a streamed response for the client: SSE, NDJSON, a JSON array or AWS event streams. */
import type { Frame, Framing, WireFrame } from '../sdk/format.ts';
import { eventStreamType, passEventStream, writeEventStream } from '../formats/_shared/event-stream.ts';
import { writeNdjson } from '../formats/_shared/json-frames.ts';
import { parseSse, sseComment, writeSse } from '../formats/_shared/sse.ts';

/** Framed output: text, or bytes where the framing is binary. */
export type Framed = string | Buffer;

/** Encodes the frames of one response in the framing that the client requested. */
export interface Framer {
  readonly contentType: string;
  frames(frames: readonly WireFrame[]): Framed;
  /** Reframes the SSE frames of a provider without parsing their data. */
  passed(bytes: Buffer): Framed;
  /** Returns the end of a complete response. */
  end(): Framed;
  /** Returns a keep-alive without content; empty where the framing has none. */
  silence(toleratesComments: boolean): string;
}

/** Media types of responses by framing. */
export const contentTypes: Readonly<Record<Framing, string>> = {
  sse: 'text/event-stream',
  ndjson: 'application/x-ndjson',
  'json-array': 'application/json',
  'event-stream': eventStreamType,
  none: 'application/json',
};

/** Returns the framer for one response. */
export function framerOf(framing: Framing): Framer {
  switch (framing) {
    case 'ndjson':
      return {
        ...plain(framing, writeNdjson, ({ data }) => `${data.replaceAll('\n', ' ')}\n`),
        silence: () => '\n',
      };
    case 'event-stream':
      return {
        contentType: contentTypes[framing],
        frames: (frames) => Buffer.concat(frames.map(writeEventStream)),
        passed: (bytes) => Buffer.concat(parseSse(bytes).map(passEventStream)),
        end: () => '',
        silence: () => '',
      };
    case 'json-array':
    case 'none':
      return jsonArray(framing);
    case 'sse':
      return {
        ...plain(framing, writeSse, () => ''),
        passed: (bytes) => bytes,
        silence: (toleratesComments) => (toleratesComments ? sseComment : ''),
      };
  }
}

function plain(
  framing: Framing,
  write: (frame: WireFrame) => string,
  pass: (frame: Frame) => string,
): Framer {
  return {
    contentType: contentTypes[framing],
    frames(frames) {
      let text = '';
      for (const frame of frames) text += write(frame);
      return text;
    },
    passed(bytes) {
      let text = '';
      for (const frame of parseSse(bytes)) text += pass(frame);
      return text;
    },
    end: () => '',
    silence: () => '',
  };
}

/** Returns a framer that writes the elements of one JSON array. */
function jsonArray(framing: 'json-array' | 'none'): Framer {
  let begun = false;
  const element = (json: string): string => {
    const separator = begun ? ',\n' : '[';
    begun = true;
    return separator + json;
  };
  return {
    ...plain(
      framing,
      (frame) => ('text' in frame ? '' : element(JSON.stringify(frame.json))),
      ({ data }) => element(data),
    ),
    end: () => (framing === 'none' ? '' : begun ? ']' : '[]'),
  };
}

/** Concatenates two framed outputs. */
export function joined(one: Framed, other: Framed): Framed {
  if (other.length === 0) return one;
  if (one.length === 0) return other;
  if (typeof one === 'string' && typeof other === 'string') return one + other;
  return Buffer.concat([Buffer.from(one), Buffer.from(other)]);
}
