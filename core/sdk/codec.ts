/** The interface of a codec (one operation in one wire format, both directions), and the types of encoded requests, marks and edits. */
import type { GatewayError } from './errors.ts';
import type { Operation } from './operation.ts';
import type {
  Framing,
  Frame,
  StreamDecoder,
  StreamEncoder,
  ReplyContext,
  BytesDecoder,
  WholeEncoder,
  UsageTap,
} from './reply-codec.ts';
import type { ReplyWords } from './reply-words.ts';
import type { ChatSettings, MediaBlock } from '../model/chat.ts';
import type { GatewayEvent, OperationResult } from '../model/event.ts';
import type { Loss } from '../model/extra.ts';
import type { Form } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import type { Reasoning } from '../model/reasoning.ts';
import type { ModelTraits } from '../model/traits.ts';
import type { GatewayRequest } from '../model/request.ts';
import type { Units } from '../model/usage.ts';

/**
 * Parameters of a request in its path and query.
 *
 * @example
 * const stream = params.stream === true || body.stream === true;
 */
export interface RouteParams {
  /** The model in the path, decoded, without a leading `models/`. */
  readonly model?: string;
  /** True when the path requests a stream (`:streamGenerateContent`). */
  readonly stream?: boolean;
  /** `alt` and the like, already read from the query. */
  readonly framing?: Framing;
  /** The parts of a body that came as a form. Its text fields are the body's members too; fields that repeat are lists there. */
  readonly form?: Form;
  /** The id of what the path names besides the model: a video that is made anew. */
  readonly id?: string;
  /** Which of several paths of one operation was taken. */
  readonly kind?: string;
}

/**
 * Facts about the target of a request, for encoders of requests.
 *
 * @example
 * encodeRequest({ user }, { model, drop }) {
 *   if (user !== undefined) drop('user');
 *   return { path: '/embed', body: { model } };
 * }
 */
export interface EncodeTarget {
  /** The model's name at the provider. */
  readonly model: string;
  readonly stream: boolean;
  readonly traits: ModelTraits;
  /** The client's headers, lower case: for versions and beta flags that travel between equals. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Reports something dropped. `path` is the piece's `at` plus the field (`messages[0].content[1].cache_control`),
   * or `settings.NAME` / `settings.NAME.MEMBER` for a ChatSettings member: the caller re-spells it in the client's words.
   */
  drop(path: string, kind?: Loss['kind']): void;
  /** Handling of input content that the format does not support: throw a 400 error, or drop and report it. */
  readonly unsupported: 'refuse' | 'drop';
}

/**
 * A request in a provider's format, before address and credentials are added.
 *
 * @example
 * const request: EncodedRequest = { path: '/embed', body: { model, texts } };
 */
export interface EncodedRequest {
  /** Below the provider's base URL: `/chat/completions`, `/messages`, `/models/m:streamGenerateContent`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default POST. The others carry no body. */
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PUT';
  readonly body: JsonObject;
  /** Sent in place of `body` when it is there. */
  readonly form?: Form;
  /** Maps tool names of the client to those in this request, and back in the response. */
  readonly toolNames?: { there(name: string): string; back(spelled: string): string };
  /** Tools that take free text and were wrapped as functions with one `input` string: calls of these come back unwrapped. */
  readonly customTools?: readonly string[];
  /** The call of this tool is the answer's text: structured output on models that have none. */
  readonly unwrapTool?: string;
  /** Text that the response must begin with. It is removed from the response where the provider repeats it. */
  readonly begun?: string;
}

/** The changes that are possible without turning pass-through off. */
export interface Edits {
  readonly model?: string;
  readonly settings?: {
    /** Members that are given replace the client's. */
    readonly reasoning?: Reasoning;
    readonly maxOutput?: number;
  };
}

/**
 * Byte sequences by which the gateway finds the frames of a pass-through that it must parse. All other frames are forwarded unparsed.
 *
 * @example
 * const marks: Marks = { usage: ['"usage":{'], terminal: ['[DONE]'] };
 */
export interface Marks {
  /** Sequences of frames that may carry usage. */
  readonly usage: readonly string[];
  /** Sequences of frames that may complete a stream: `endsStream` decides. */
  readonly terminal: readonly string[];
  /** The key under which replies name the model. Default `model`. */
  readonly model?: string;
  /** One of these is a member of every whole reply that is one, where that is no chat. */
  readonly reply?: readonly string[];
  /** Stands in every frame of a format whose frames are numbered. */
  readonly number?: string;
}

/**
 * Estimated usage of a request before it is sent.
 *
 * @example
 * estimate: ({ inputs }): Expected => ({ input: inputs.length * 100, output: 0 }),
 */
export interface Expected {
  /** Tokens. */
  readonly input: number;
  readonly output: number;
  readonly units?: Units;
  /** Maximum usage, where that is more: budgets are checked against it. */
  readonly most?: { readonly input?: number; readonly output?: number; readonly units?: Units };
}

/** A part of a request that the traits of a model may change. */
export type SettledName = keyof ChatSettings | 'toolChoice' | 'tools';

/**
 * Decodes and encodes requests and responses of one operation in one wire format. `defineCodec` makes one.
 *
 * @example
 * const codec: Codec<EmbedRequest> = defineCodec({ format: 'acme', operation: 'embed', path: '/embed', ...members });
 */
export interface Codec<R extends GatewayRequest = GatewayRequest> {
  readonly format: string;
  readonly operation: Operation;
  /** Framing of the provider's stream. */
  readonly upstreamFraming: Framing;
  readonly marks: Marks;
  /** False where clients break on SSE comments, so that no keep-alives are sent (generateContent). */
  readonly toleratesComments: boolean;
  /** True for a frame by which a stream is complete: one without any was cut. Absent: every frame with one of the terminal marks is such a one. */
  endsStream?(frame: Frame): boolean;
  /** True where a successful response may have an `error` member, which is the state of an object in it. */
  readonly tellsErrors?: boolean;
  /** True where a provider's stream may also come as a JSON array or as lines of JSON. */
  readonly streamsAsJson?: boolean;

  /** Returns the model and the stream flag of a client's request. Throws 400 when the model is missing or of the wrong type. */
  peek(body: JsonObject, params: RouteParams): { readonly model: string; readonly stream: boolean };
  /** Checks the limits and types of every field of a client's request that the gateway reads, also for a pass-through, and returns the decoded request. Throws a 400 error that names the field. */
  validate(body: JsonObject, params: RouteParams): R;
  /** True where `validate` finds in the outline of a body what it finds in the whole: it reads no words of long texts. Absent where it may. */
  readonly outlines?: true;
  /** Returns the error for a member that another one excludes, named by its `param` (chat completions: `top_p` beside `temperature`). */
  samplingConflict?(body: JsonObject): GatewayError | undefined;
  /** Returns the framing of the stream that this client requested. */
  clientFraming(body: JsonObject, params: RouteParams): Framing;
  /** False when this body cannot go as it is to a channel of this same format, for a model with these traits: it is decoded and encoded then. Absent where it always can. */
  passes?(body: JsonObject, traits: ModelTraits): boolean;
  /** Returns the client's body with the edits and no other change. `drop` reports fields that the model does not support, as in {@link EncodeTarget}. */
  patch(body: JsonObject, edits: Edits, traits: ModelTraits, drop?: (path: string) => void): JsonObject;
  /**
   * Returns the client's body with spellings of the specification that no provider of this format accepts replaced by those that it does; the
   * same object where there are none. Absent where the specification and providers agree. Runs for a pass-through, because the encoder writes
   * the accepted spellings anyway.
   */
  official?(body: JsonObject, traits: ModelTraits, drop: (path: string) => void): JsonObject;
  /** Returns path, query and headers of a request that passes through unchanged. */
  passThrough(
    model: string,
    stream: boolean,
    headers: Readonly<Record<string, string>>,
  ): Omit<EncodedRequest, 'body'>;
  /** Returns members that request usage in a stream (chat completions) where the client did not. Absent where streams always report it. */
  askUsage?(body: JsonObject): JsonObject | undefined;
  /** Returns true for the frame that only `askUsage` requested. The client must not get it. */
  isUsageOnly?(data: string): boolean;
  /**
   * Returns the top-level members of a setting, of the tool choice (`toolChoice`), or of the tools (`tools`) in this format. Absent for operations to
   * which no traits of settings apply.
   */
  places?(name: SettledName): readonly string[];
  /** Says when a tool can be forced on models of this format whose traits do not state it. Default `always`. */
  readonly forcedTools?: NonNullable<ModelTraits['forcedTools']>;
  /** Returns the changes that responses of a model with these traits need for a client of this format; undefined for most. `request` is the client's body. */
  replyWords?(traits: ModelTraits, request: JsonObject): ReplyWords | undefined;
  /** Returns the error for a request that only a channel of this same format can serve; undefined for most. It is thrown before any translation. */
  onlyNative?(body: JsonObject): GatewayError | undefined;

  /** Decodes a client's request. */
  decodeRequest(body: JsonObject, params: RouteParams): R;
  /** Encodes a request for the provider. */
  encodeRequest(request: R, target: EncodeTarget): EncodedRequest;
  /** True where `encodeRequest` may be given a request in which marks stand for long texts: it puts them where the texts would go, and joins them with others at most. Absent where it may read them. */
  readonly writesMarks?: true;
  /** Returns true for media by URL that channels of this format accept only as bytes, so that they are downloaded first. Default: by `traits.fetchesUrls`. */
  wantsBytes?(block: MediaBlock, traits: ModelTraits): boolean;
  /** True when a request cannot request several answers (`n`). */
  readonly singleChoice?: true;
  /** Throws 400 for a client's request that a model with these traits cannot do although the format allows it. Runs for a pass-through too. */
  check?(request: R, traits: ModelTraits): void;
  /** True where the images of a request stand in its JSON: files and addresses are read before it is encoded, and given as `data`. */
  readonly inlinesImages?: boolean;
  /** Estimates the usage of a request, for budgets and limits. Absent for chats, because their words are counted. */
  estimate?(request: R): Expected;
  /** Returns a decoder for a provider's whole response that is no JSON, chunk by chunk. */
  decodeBytes?(traits: ModelTraits): BytesDecoder;
  /** Returns the kind of a whole response that the client wants as something other than JSON. The response passes with the provider's content type. */
  replyKind?(body: JsonObject): 'text' | 'bytes' | undefined;
  /** Splits a request that exceeds a limit of the provider into several; returns the request itself when it fits. Called on the codec that encodes for the provider. */
  split?(request: R, traits: ModelTraits): readonly R[];
  /** Joins the results of the requests that `split` returned. */
  join?(results: readonly OperationResult[]): OperationResult;
  /** Returns a decoder for one stream of the provider. Absent where the operation has no stream. `traits` are the model's. */
  decodeStream?(traits: ModelTraits): StreamDecoder;
  /** Returns an encoder for one stream to a client. Absent where the operation has no stream. */
  encodeStream?(context: ReplyContext): StreamEncoder;
  /** Decodes a provider's whole response into the events that a stream would give. Throws GatewayError for an error body. */
  decodeWhole(body: JsonObject, traits: ModelTraits): readonly GatewayEvent[];
  /** Returns an encoder that collects events into a whole response. */
  encodeWhole(context: ReplyContext): WholeEncoder;
  /** Returns a reader of usage in a pass-through's frames and whole bodies. It keeps state between frames. */
  usageTap(): UsageTap;
  /** Encodes the request for the file of a finished video, for providers that require their key. `url` is the one in the provider's report. */
  contentRequest?(
    request: R,
    part: 'video' | 'thumbnail' | 'spritesheet',
    url: string | undefined,
  ): EncodedRequest | undefined;
  /** Returns the path of a `ChatSettings` member in this format: `temperature` → `generationConfig.temperature`. */
  settingPath(name: keyof ChatSettings): string;
  /**
   * Names of this format for the neutral names that {@link EncodeTarget.drop} gets: `settings.reasoning.show`, or the last member of a path
   * (`cache`, `failed`). Names that are the same in both need no entry.
   */
  readonly words?: Readonly<Record<string, string>>;
}
