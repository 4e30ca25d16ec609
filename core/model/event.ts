/** Events of a response in neutral form, from the first attempt to the last delta, and the results of operations. */
import type { Transcript } from './audio.ts';
import type { Citation, Logprob } from './chat.ts';
import type { EmbedResult } from './embed.ts';
import type { Extra, Loss, Proof } from './extra.ts';
import type { ImageResult } from './image.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { ModerationResult } from './moderation.ts';
import type { OcrResult } from './ocr.ts';
import type { SocketMessage } from './realtime.ts';
import type { RerankResult } from './rerank.ts';
import type { Usage } from './usage.ts';
import type { VideoReport } from './video.ts';

/**
 * A model as the lists show it.
 *
 * @example
 * const names = tools.catalog.list().map(({ id }) => id);
 */
export interface ListedModel {
  readonly id: string;
  /** Unix seconds; 0 when unknown. */
  readonly created: number;
  readonly ownedBy: string;
  /** What it is known to be for (`embed`, `speak` …). Absent: chat, or not known. */
  readonly operation?: string;
  readonly inputLimit?: number;
  readonly outputLimit?: number;
  readonly thinking?: boolean;
  /** What it takes besides text, and what it is known to do, as far as the catalogue tells: `image`, `tools` … */
  readonly takes?: readonly string[];
  readonly can?: readonly string[];
  readonly cannot?: readonly string[];
}

/**
 * Why an answer ended. The provider's own word rides beside it as `raw`.
 *
 * @example
 * const isWhole = event.type === 'finish' && event.reason !== 'length';
 */
export type FinishReason =
  | 'stop'
  | 'stop-sequence'
  | 'length'
  | 'context-window'
  | 'tool-calls'
  | 'content-filter'
  | 'refusal'
  | 'pause'
  | 'compaction'
  | 'malformed'
  | 'other';

interface InBlock {
  /** Names the block through its life; unique within the reply. */
  readonly block: number;
  /** Which answer of several, from 0. */
  readonly choice: number;
  readonly extra?: Extra;
}

/** The first event of every exchange: the call as it is about to be sent, after every edit. */
export interface RequestEvent {
  readonly type: 'request';
  readonly model: string;
  readonly stream: boolean;
}

/**
 * Cause of a failure, for operators alone: neither shortened nor masked.
 *
 * @example
 * const status = outcome.attempts.at(-1)?.cause?.status;
 */
export interface FailureCause {
  /** HTTP status of the provider's response; 200 for an error inside a stream. Absent where there was no response. */
  readonly status?: number;
  /** The words of the provider, of the service that gives credentials, or of the connection that failed. */
  readonly message?: string;
}

/**
 * An attempt at a target. The last one of a reply is the one that answers.
 *
 * @example
 * if (event.type === 'attempt' && event.failure !== undefined) log.info({ channel: event.channel }, 'attempt failed');
 */
export interface AttemptEvent {
  readonly type: 'attempt';
  readonly channel: string;
  /** The id of the channel's key, on attempts that failed; absent where there is none. For operators alone. */
  readonly key?: string;
  /** The model's name at the provider. */
  readonly model: string;
  /** The format spoken to it; absent when the attempt failed before that was settled. */
  readonly format?: string;
  /** True when the client's own bytes go through. */
  readonly passThrough?: boolean;
  /** Why this attempt failed: an error's code, or `hedged` when another one that was asked beside it answered first. Absent on the one that answers. */
  readonly failure?: string;
  /** Cause of that failure. */
  readonly cause?: FailureCause;
  /** `performance.now()` when its request was sent, and when it failed. On attempts that failed, where they are known. */
  readonly startedAt?: number;
  readonly endedAt?: number;
}

/**
 * Status and headers of a provider's response, before its bytes. Seen only behind the translate stage.
 *
 * @example
 * if (event.type === 'answer' && event.status === 200) hits.add();
 */
export interface AnswerEvent {
  readonly type: 'answer';
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The reply begins. `id` is the provider's; each format re-spells it in its own style. */
export interface HeadEvent {
  readonly type: 'head';
  readonly id: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created?: number;
  readonly extra?: Extra;
}

/**
 * What flows from a channel back to the client. Order of a reply: `request`, `attempt`…, `loss`…, `head`,
 * then blocks (each start, deltas, end; blocks of one choice may interleave only where an upstream interleaves tool calls),
 * `finish` once per choice, `usage` any time after `head`, and the observable completes. An upstream that is cut errors instead.
 *
 * @example
 * const louder = (event: GatewayEvent): GatewayEvent =>
 *   event.type === 'text-delta' ? { ...event, text: event.text.toUpperCase() } : event;
 */
export type GatewayEvent =
  | RequestEvent
  | AttemptEvent
  | AnswerEvent
  | HeadEvent
  /** A block of text begins. */
  | (InBlock & { readonly type: 'text-start' })
  /** The next piece of a text. */
  | (InBlock & { readonly type: 'text-delta'; readonly text: string; readonly logprobs?: readonly Logprob[] })
  /** A source of the text so far. */
  | (InBlock & { readonly type: 'citation'; readonly citation: Citation })
  /** A block of text ends. */
  | (InBlock & { readonly type: 'text-end'; readonly proof?: Proof })
  /** The model begins to decline, in a text of its own. */
  | (InBlock & { readonly type: 'refusal-start' })
  /** The next piece of that text. */
  | (InBlock & { readonly type: 'refusal-delta'; readonly text: string })
  /** It ends. */
  | (InBlock & { readonly type: 'refusal-end' })
  /** A block of reasoning begins. */
  | (InBlock & { readonly type: 'reasoning-start' })
  /** The next piece of reasoning. */
  | (InBlock & { readonly type: 'reasoning-delta'; readonly text: string })
  /** A block of reasoning ends. `proof` is what the provider needs to take it back: a signature or encrypted text. */
  | (InBlock & { readonly type: 'reasoning-end'; readonly proof?: Proof })
  /** A tool call begins. */
  | (InBlock & {
      readonly type: 'tool-start';
      readonly id: string;
      readonly name: string;
      /** Takes free text instead of JSON. */
      readonly custom?: boolean;
      /** Known at the start where the provider sends it with the call. */
      readonly proof?: Proof;
    })
  /** The next piece of its arguments: of JSON, or of free text. */
  | (InBlock & { readonly type: 'tool-delta'; readonly input: string })
  /** Its arguments are complete. */
  | (InBlock & { readonly type: 'tool-end' })
  /** An image, sound, video or file begins. */
  | (InBlock & {
      readonly type: 'media-start';
      readonly media: 'image' | 'audio' | 'video' | 'file';
      readonly mimeType?: string;
    })
  /** `data` is base64 and may come in pieces, each a multiple of four characters; `transcript` is what is said. */
  | (InBlock & { readonly type: 'media-delta'; readonly data?: string; readonly transcript?: string })
  /** It ends. `url`: where it can be fetched, in place of `data`. */
  | (InBlock & { readonly type: 'media-end'; readonly url?: string })
  /** One answer has ended, and why. */
  | {
      readonly type: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      /** The provider's word. */
      readonly raw?: string;
      /** The format `raw` is written in: the same format gives it back as it was. */
      readonly format?: string;
      readonly stopSequence?: string;
      readonly extra?: Extra;
    }
  /** Cumulative: the last one counts. `part`, in a session of several answers: what the one that has just ended used, as the provider told it. */
  | { readonly type: 'usage'; readonly usage: Usage; readonly part?: Usage }
  /** The whole answer of an operation other than chat, in the shape that the operation has: `{tokens: 12}` of count-tokens. */
  | { readonly type: 'result'; readonly value: OperationResult }
  /** A sketch of an image that is being made. `data` is base64. */
  | { readonly type: 'partial-image'; readonly data: string; readonly index: number; readonly extra?: Extra }
  /** A message of a WebSocket that passes through. */
  | ({ readonly type: 'message' } & SocketMessage)
  /** The models that the caller may use, in the exchange of a model list; plugins may leave some out. */
  | { readonly type: 'models'; readonly models: readonly ListedModel[] }
  /** Bytes of a provider's answer as they came; before the translate stage only those of a whole reply that passes through. */
  | { readonly type: 'bytes'; readonly bytes: Buffer }
  /** One or more complete frames of a stream in the client's own format, as they came: the pass-through. */
  | { readonly type: 'frames'; readonly format: string; readonly bytes: Buffer }
  /** A part of a reply that only one format knows, verbatim; its encoder writes it in place, others report a loss. */
  | { readonly type: 'opaque'; readonly format: string; readonly value: JsonObject; readonly choice?: number }
  /** A part of the request or the response that could not be carried. */
  | { readonly type: 'loss'; readonly loss: Loss };

/**
 * The value of a `result` event; its shape is that of the operation.
 *
 * @example
 * const value: OperationResult = { vectors: [[0.1, 0.2]] };
 */
export type OperationResult =
  | JsonValue
  | EmbedResult
  | RerankResult
  | ModerationResult
  | OcrResult
  | ImageResult
  | Transcript
  | VideoReport;

/** The name of every event. */
export type EventType = GatewayEvent['type'];

/** Events by which a reply has not yet said anything: as long as no other came, it may still be had elsewhere. */
const beforeWords: ReadonlySet<EventType> = new Set<EventType>([
  'request',
  'attempt',
  'loss',
  'answer',
  'head',
  'usage',
  'text-start',
  'refusal-start',
  'reasoning-start',
  'media-start',
]);

/**
 * Returns true for an event that gives the client something of the answer.
 *
 * @example
 * const reply = await peekFirst(await next(call), call.gate, saysSomething);
 */
export function saysSomething(event: GatewayEvent): boolean {
  if (event.type === 'text-delta' || event.type === 'reasoning-delta') return event.text !== '';
  return !beforeWords.has(event.type);
}
