import type { ChatRequest, GatewayEvent, JsonObject, ModelTraits } from 'sluice';
import {
  chatCodec,
  ChatStreamDecoder,
  cutShort,
  isObject,
  parseObject,
  tellsError,
  upstreamError,
  type Codec,
  type EncodeTarget,
  type Frame,
  type StreamDecoder,
} from 'sluice/internal';

/** Reads one reply of a provider, piece by piece, as the chunks of chat completions that would say the same. */
export interface DialectReply {
  chunks(piece: JsonObject, event: string | undefined): readonly JsonObject[];
}

/** How the words of a provider differ from those of chat completions, in both directions. */
export interface ChatDialect {
  /** The name under which the channel speaks it. */
  readonly format: string;
  /** True where a stream comes as lines of JSON. */
  readonly streamsAsJson?: boolean;
  path(stream: boolean): string;
  /** A body of chat completions in the provider's words. It may hold members that only a client of chat completions knew to send. */
  request(body: JsonObject, target: EncodeTarget): JsonObject;
  /** A reader for one stream. */
  reply(): DialectReply;
  /** A whole reply as the body of chat completions that would say the same. */
  whole(body: JsonObject): JsonObject;
}

/** The codec of a provider whose chat is chat completions in other words: what it shares with these is written and read by theirs. */
export function chatDialect(dialect: ChatDialect): Codec<ChatRequest> {
  const { passes: _, ...shared } = chatCodec;
  return {
    ...shared,
    format: dialect.format,
    ...(dialect.streamsAsJson === true ? { streamsAsJson: true } : {}),
    passThrough: (_model, stream) => ({ path: dialect.path(stream) }),
    encodeRequest(request, target) {
      const { headers: _headers, ...encoded } = chatCodec.encodeRequest(request, target);
      return { ...encoded, path: dialect.path(target.stream), body: dialect.request(encoded.body, target) };
    },
    decodeStream: (traits) => new DialectDecoder(traits, dialect.reply()),
    decodeWhole: (body, traits) => {
      if (tellsError(body)) throw upstreamError(200, JSON.stringify(body));
      return chatCodec.decodeWhole(dialect.whole(body), traits);
    },
  };
}

class DialectDecoder implements StreamDecoder {
  readonly #decoder: ChatStreamDecoder;
  readonly #reply: DialectReply;

  constructor(traits: ModelTraits, reply: DialectReply) {
    this.#decoder = new ChatStreamDecoder(traits);
    this.#reply = reply;
  }

  frame({ data, event }: Frame): readonly GatewayEvent[] {
    if (data.trim() === '' || data.trim() === '[DONE]') return [];
    const piece = parseObject(data);
    // The end of a line is where a connection that broke shows.
    if (piece === undefined) throw cutShort();
    if (event === 'error' || tellsError(piece)) throw upstreamError(200, data);
    return this.#reply.chunks(piece, event).flatMap((chunk) => this.#decoder.chunk(chunk));
  }

  end(): readonly GatewayEvent[] {
    return this.#decoder.end();
  }
}

/** Splits the members of a body into those that a provider knows and those that are reported as lost. `$` and nulls are neither. */
export function knownMembers(
  body: JsonObject,
  known: ReadonlySet<string>,
  lose: (path: string) => void,
): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => {
      if (known.has(name)) return true;
      if (value !== null && value !== undefined) lose(name);
      return false;
    }),
  );
}

/** The objects of a list; none where it is no list. */
export function objectsOf(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter((one) => isObject(one)) : [];
}
