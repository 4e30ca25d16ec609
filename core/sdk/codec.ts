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
 * What the path and the query say about a request besides its body.
 *
 * @example
 * const stream = params.stream === true || body.stream === true;
 */
export interface RouteParams {
  /** The model in the path, decoded, without a leading `models/`. */
  readonly model?: string;
  /** The path itself asks for a stream (`:streamGenerateContent`). */
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
 * What an encoder of requests knows of where the request goes.
 *
 * @example
 * encodeRequest({ user }, { model, lose }) {
 *   if (user !== undefined) lose('user');
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
  lose(path: string, kind?: Loss['kind']): void;
  /** What to do with input content that the format cannot carry: throw 400, or drop and report. */
  readonly unsupported: 'refuse' | 'drop';
}

/**
 * A request in a provider's words, before address and credentials.
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
  /** How this request spells tool names: calls in the reply get the client's names back. */
  readonly toolNames?: { there(name: string): string; back(spelled: string): string };
  /** Tools that take free text and were wrapped as functions with one `input` string: calls of these come back unwrapped. */
  readonly customTools?: readonly string[];
  /** The call of this tool is the answer's text: structured output on models that have none. */
  readonly unwrapTool?: string;
  /** What the request lets the answer begin with, where the provider says it again at the head of its answer: it is left out there. */
  readonly begun?: string;
}

/** The few changes that keep a pass-through a pass-through. */
export interface Edits {
  readonly model?: string;
  readonly settings?: {
    /** Members that are given replace the client's. */
    readonly reasoning?: Reasoning;
    readonly maxOutput?: number;
  };
}

/** What a pass-through must watch for, as bytes, so that no other frame is parsed. A mark is only a reason to look. */
export interface Marks {
  /** A frame with this may carry usage. */
  readonly usage: readonly string[];
  /** A frame with this may be one by which a stream is complete: `endsStream` says whether it is. */
  readonly terminal: readonly string[];
  /** The key under which replies name the model. Default `model`. */
  readonly model?: string;
  /** One of these is a member of every whole reply that is one, where that is no chat. */
  readonly reply?: readonly string[];
  /** Stands in every frame of a format whose frames are numbered. */
  readonly number?: string;
}

/**
 * What a request is expected to use, before it is sent.
 *
 * @example
 * estimate: ({ inputs }): Expected => ({ input: inputs.length * 100, output: 0 }),
 */
export interface Expected {
  /** Tokens. */
  readonly input: number;
  readonly output: number;
  readonly units?: Units;
  /** The most that it may use, where that is more: what is left of a budget is measured by it. */
  readonly most?: { readonly input?: number; readonly output?: number; readonly units?: Units };
}

/** A part of a request that the traits of a model may change. */
export type SettledName = keyof ChatSettings | 'toolChoice' | 'tools';

/**
 * Writes requests to a provider and reads its replies, for one operation in one wire format. `defineCodec` makes one.
 *
 * @example
 * const codec: Codec<EmbedRequest> = defineCodec({ format: 'acme', operation: 'embed', path: '/embed', ...members });
 */
export interface Codec<R extends GatewayRequest = GatewayRequest> {
  readonly format: string;
  readonly operation: Operation;
  /** How the provider's stream is framed. */
  readonly upstreamFraming: Framing;
  readonly marks: Marks;
  /** False where clients break on SSE comments, so that a silence stays silent (generateContent). */
  readonly toleratesComments: boolean;
  /** True for a frame by which a stream is complete: one without any was cut. Absent: every frame with one of the terminal marks is such a one. */
  endsStream?(frame: Frame): boolean;
  /** True where a sound reply may have an `error` in it, which tells what became of something. */
  readonly tellsErrors?: boolean;
  /** True where a provider's stream may also come as a JSON array or as lines of JSON. */
  readonly streamsAsJson?: boolean;

  /** Model and stream flag of a client's request. Throws 400 when the model is missing or of the wrong type. */
  peek(body: JsonObject, params: RouteParams): { readonly model: string; readonly stream: boolean };
  /** The spec's limits and the types of every field the gateway reads, on a client's request. Throws 400 with the path. Runs for a pass-through too. Gives the decoded request, so that none is decoded twice. */
  validate(body: JsonObject, params: RouteParams): R;
  /** True where `validate` finds in the outline of a body what it finds in the whole: it reads no words of long texts. Absent where it may. */
  readonly outlines?: true;
  /** Returns the error for a member that another one excludes, named by its `param` (chat completions: `top_p` beside `temperature`). */
  samplingConflict?(body: JsonObject): GatewayError | undefined;
  /** The framing in which this client wants its stream. */
  clientFraming(body: JsonObject, params: RouteParams): Framing;
  /** False when this body cannot go as it is to a channel of this same format, for a model with these traits: it is decoded and encoded then. Absent where it always can. */
  passes?(body: JsonObject, traits: ModelTraits): boolean;
  /** The client's body with the edits made and nothing else changed. `lose` is told what the model cannot be asked for, as in {@link EncodeTarget}. */
  patch(body: JsonObject, edits: Edits, traits: ModelTraits, lose?: (path: string) => void): JsonObject;
  /**
   * The client's body with those words of the spec that no provider of this format takes put into words that it does; the same object
   * where there are none. Absent where the spec and providers agree. Runs for a pass-through: the encoder writes such words anyway.
   */
  official?(body: JsonObject, traits: ModelTraits, lose: (path: string) => void): JsonObject;
  /** Where the body goes when it passes through unchanged. */
  passThrough(
    model: string,
    stream: boolean,
    headers: Readonly<Record<string, string>>,
  ): Omit<EncodedRequest, 'body'>;
  /** Members that make a streamed request ask for usage when the client did not (chat completions): undefined when nothing is to be added. Absent where streams always tell. */
  askUsage?(body: JsonObject): JsonObject | undefined;
  /** True for the frame that came only because `askUsage` asked: the client must not see it. */
  isUsageOnly?(data: string): boolean;
  /**
   * Members at the top of a body in which this format says a setting, which tool is called (`toolChoice`), or which tools there are (`tools`). Absent
   * for operations to which no traits of settings apply.
   */
  places?(name: SettledName): readonly string[];
  /** When a tool can be forced on models of this format whose traits do not say it. Default `always`. */
  readonly forcedTools?: NonNullable<ModelTraits['forcedTools']>;
  /** What has to change in replies of a model with these traits to a client of this format; undefined for most. `request` is the client's body. */
  replyWords?(traits: ModelTraits, request: JsonObject): ReplyWords | undefined;
  /** Why only a channel of this same format can answer this request; undefined for most. Thrown before any translation. */
  onlyNative?(body: JsonObject): GatewayError | undefined;

  decodeRequest(body: JsonObject, params: RouteParams): R;
  encodeRequest(request: R, target: EncodeTarget): EncodedRequest;
  /** True where `encodeRequest` may be given a request in which marks stand for long texts: it puts them where the texts would go, and joins them with others at most. Absent where it may read them. */
  readonly writesMarks?: true;
  /** True for a medium by URL that channels of this format take as bytes alone, so that it is fetched first. Absent: as `traits.fetchesUrls` says. */
  wantsBytes?(block: MediaBlock, traits: ModelTraits): boolean;
  /** True where a request cannot ask for several answers (`n`). */
  readonly singleChoice?: true;
  /** Throws 400 for a client's request that a model with these traits cannot do although the format allows it. Runs for a pass-through too. */
  check?(request: R, traits: ModelTraits): void;
  /** True where the images of a request stand in its JSON: files and addresses are read before it is encoded, and given as `data`. */
  readonly inlinesImages?: boolean;
  /** What a request may use, for budgets and limits. Absent for chats: their words are counted. */
  estimate?(request: R): Expected;
  /** Reads a provider's whole reply that is no JSON, as it comes. */
  decodeBytes?(traits: ModelTraits): BytesDecoder;
  /** What the client wants a whole reply to be, where it is no JSON: it then passes with the provider's content type. */
  replyKind?(body: JsonObject): 'text' | 'bytes' | undefined;
  /** A request that a provider takes only in pieces, as these pieces; one of them when it fits. Asked of the codec that speaks to the provider. */
  split?(request: R, traits: ModelTraits): readonly R[];
  /** The results of the pieces as one. */
  join?(results: readonly OperationResult[]): OperationResult;
  /** Absent, with `encodeStream`, where the operation has no stream. `traits` are the model's. */
  decodeStream?(traits: ModelTraits): StreamDecoder;
  encodeStream?(context: ReplyContext): StreamEncoder;
  /** A provider's whole reply as the same events a stream would give. Throws GatewayError when it is an error body. */
  decodeWhole(body: JsonObject, traits: ModelTraits): readonly GatewayEvent[];
  /** Gathers events into a whole reply. */
  encodeWhole(context: ReplyContext): WholeEncoder;
  /** Reads usage from a pass-through's frames and whole bodies; remembers what earlier frames said. */
  usageTap(): UsageTap;
  /** Where the bytes of a finished video are, for a provider that gives them only to whoever shows its key. `url` is what it told. */
  contentRequest?(
    request: R,
    part: 'video' | 'thumbnail' | 'spritesheet',
    url: string | undefined,
  ): EncodedRequest | undefined;
  /** The client's path of a `ChatSettings` member: `temperature` → `generationConfig.temperature`. */
  settingPath(name: keyof ChatSettings): string;
  /**
   * How this format spells what {@link EncodeTarget.lose} names neutrally: `settings.reasoning.show`, or the last member of a piece's path
   * (`cache`, `failed`). Names that are the same in both need no row.
   */
  readonly words?: Readonly<Record<string, string>>;
}
