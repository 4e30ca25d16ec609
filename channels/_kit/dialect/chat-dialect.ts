/**
 * Builds the codec of a provider whose chat API is a variant of chat completions: bodies are translated to and from chat completions, whose
 * own codec does the rest.
 */
import {
  isObject,
  parseObject,
  type ChatRequest,
  type GatewayEvent,
  type JsonObject,
  type ModelTraits,
} from 'sluice';
import {
  chatCodec,
  truncatedResponse,
  upstreamError,
  type Codec,
  type EncodeTarget,
  type Frame,
  type StreamDecoder,
  tellsError,
} from 'sluice/channel-kit';
import { ChatStreamDecoder } from 'sluice/internal';

/** Translates one response of a provider, piece by piece, into chunks of chat completions. */
export interface DialectReply {
  chunks(piece: JsonObject, event: string | undefined): readonly JsonObject[];
}

/** Differences between a provider's chat API and chat completions, in both directions. */
export interface ChatDialect {
  /** The name under which the channel speaks it. */
  readonly format: string;
  /** True where a stream comes as lines of JSON. */
  readonly streamsAsJson?: boolean;
  path(stream: boolean): string;
  /** Pieces for which the provider has words and chat completions have none, as parts of the provider's own. Absent where there are none. */
  prepare?(request: ChatRequest, target: EncodeTarget): ChatRequest;
  /** Overrides {@link Codec.wantsBytes} where it differs from chat completions. */
  wantsBytes?: Codec['wantsBytes'];
  /** Returns a body of chat completions in the provider's format. It may hold members that only a client of chat completions knew to send. */
  request(body: JsonObject, target: EncodeTarget): JsonObject;
  /** Returns the beginning of the response that such a body gives, where the provider repeats it: {@link EncodedRequest.begun}. */
  begun?(body: JsonObject): string | undefined;
  /** Returns a reader for one stream. */
  reply(): DialectReply;
  /** A whole reply as the body of chat completions that would say the same. Absent where it reads like the one piece of a stream. */
  whole?(body: JsonObject): JsonObject;
}

/** Returns the codec. Members that both APIs share are encoded and decoded by the codec of chat completions. */
export function chatDialect(dialect: ChatDialect): Codec<ChatRequest> {
  const { passes: _, ...shared } = chatCodec;
  return {
    ...shared,
    format: dialect.format,
    ...(dialect.streamsAsJson === true ? { streamsAsJson: true } : {}),
    passThrough: (_model, stream) => ({ path: dialect.path(stream) }),
    ...(dialect.wantsBytes === undefined ? {} : { wantsBytes: dialect.wantsBytes }),
    encodeRequest(request, target) {
      const prepared = dialect.prepare?.(request, target) ?? request;
      const { headers: _headers, ...encoded } = chatCodec.encodeRequest(prepared, target);
      const body = dialect.request(encoded.body, target);
      const begun = dialect.begun?.(body);
      return {
        ...encoded,
        path: dialect.path(target.stream),
        body,
        ...(begun === undefined ? {} : { begun }),
      };
    },
    decodeStream: (traits) => new DialectDecoder(traits, dialect),
    decodeWhole: (body, traits) => {
      if (tellsError(body)) throw upstreamError(200, JSON.stringify(body));
      if (dialect.whole !== undefined) return chatCodec.decodeWhole(withTotal(dialect.whole(body)), traits);
      const decoder = new DialectDecoder(traits, dialect);
      return [...decoder.piece(body, undefined), ...decoder.end()];
    },
  };
}

class DialectDecoder implements StreamDecoder {
  readonly #decoder: ChatStreamDecoder;
  readonly #reply: DialectReply;
  readonly #format: string;

  constructor(traits: ModelTraits, dialect: ChatDialect) {
    this.#decoder = new ChatStreamDecoder(traits);
    this.#reply = dialect.reply();
    this.#format = dialect.format;
  }

  frame({ data, event }: Frame): readonly GatewayEvent[] {
    if (data.trim() === '' || data.trim() === '[DONE]') return [];
    const piece = parseObject(data);
    // The end of a line is where a connection that broke shows.
    if (piece === undefined) throw truncatedResponse();
    if (event === 'error' || tellsError(piece)) throw upstreamError(200, data);
    return this.piece(piece, event);
  }

  /** Returns the events of one parsed piece. A proof in it is the provider's, which nobody else can take. */
  piece(piece: JsonObject, event: string | undefined): readonly GatewayEvent[] {
    return this.#reply
      .chunks(piece, event)
      .flatMap((chunk) => this.#decoder.chunk(withTotal(chunk)))
      .map((one) =>
        one.type === 'reasoning-end' && one.proof !== undefined
          ? { ...one, proof: { ...one.proof, format: this.#format }, extra: {} }
          : one,
      );
  }

  end(): readonly GatewayEvent[] {
    return this.#decoder.end();
  }
}

/** Adds `total_tokens`, which clients of chat completions expect and some providers do not send. */
function withTotal(reply: JsonObject): JsonObject {
  const { usage } = reply;
  if (!isObject(usage) || usage.total_tokens !== undefined) return reply;
  const { prompt_tokens: input, completion_tokens: output } = usage;
  if (typeof input !== 'number' || typeof output !== 'number') return reply;
  return { ...reply, usage: { ...usage, total_tokens: input + output } };
}

/** Splits the members of a body into those that a provider knows and those that are reported as lost. `$` and nulls are neither. */
export function knownMembers(
  body: JsonObject,
  known: ReadonlySet<string>,
  drop: (path: string) => void,
): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => {
      if (known.has(name)) return true;
      if (value !== null && value !== undefined) drop(name);
      return false;
    }),
  );
}

/** Returns the objects of a list; an empty list if it is not a list. */
export function objectsOf(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter((one) => isObject(one)) : [];
}
