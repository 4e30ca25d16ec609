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
 * A model in model lists.
 *
 * @example
 * const names = tools.catalog.list().map(({ id }) => id);
 */
export interface ListedModel {
  readonly id: string;
  /** Unix seconds; 0 when unknown. */
  readonly created: number;
  readonly ownedBy: string;
  /** Operation of the model (`embed`, `speak` …), if known. Absent: chat, or unknown. */
  readonly operation?: string;
  readonly inputLimit?: number;
  readonly outputLimit?: number;
  readonly thinking?: boolean;
  /** Inputs beside text, and capabilities, according to the catalogue: `image`, `tools` … */
  readonly takes?: readonly string[];
  readonly can?: readonly string[];
  readonly cannot?: readonly string[];
}

/**
 * Reason why a response ended. The provider's own value is in `raw`.
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
  /** Id of the block in all of its events. Unique within the response. */
  readonly block: number;
  /** Index of the choice, from 0. */
  readonly choice: number;
  readonly extra?: Extra;
}

/** First event of every call: the request as it is about to be sent, after all edits. */
export interface RequestEvent {
  readonly type: 'request';
  readonly model: string;
  readonly stream: boolean;
}

/**
 * Cause of a failure, for operators only: neither shortened nor masked.
 *
 * @example
 * const status = outcome.attempts.at(-1)?.cause?.status;
 */
export interface FailureCause {
  /** HTTP status of the provider's response; 200 for an error inside a stream. Absent where there was no response. */
  readonly status?: number;
  /** Error message of the provider, of the service that issues credentials, or of the failed connection. */
  readonly message?: string;
}

/**
 * An attempt at a target. The last attempt of a response is the successful one.
 *
 * @example
 * if (event.type === 'attempt' && event.failure !== undefined) log.info({ channel: event.channel }, 'attempt failed');
 */
export interface AttemptEvent {
  readonly type: 'attempt';
  readonly channel: string;
  /** Id of the channel's key, on failed attempts; absent if the channel has none. For operators only. */
  readonly key?: string;
  /** The model's name at the provider. */
  readonly model: string;
  /** Format of the request to the provider; absent if the attempt failed before it was selected. */
  readonly format?: string;
  /** True if the client's bytes pass through unchanged. */
  readonly passThrough?: boolean;
  /**
   * Code of the error with which this attempt failed, or `hedged` if a parallel attempt responded first. Absent on the successful attempt.
   */
  readonly failure?: string;
  /** Cause of that failure. */
  readonly cause?: FailureCause;
  /** `performance.now()` when the request was sent, and when it failed. Only on failed attempts, if known. */
  readonly startedAt?: number;
  readonly endedAt?: number;
}

/**
 * Status and headers of a provider's response, before its bytes. Only seen by plugins after the translate stage.
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

/** Begin of the response. `id` is the provider's; each format changes it to its own style. */
export interface HeadEvent {
  readonly type: 'head';
  readonly id: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created?: number;
  readonly extra?: Extra;
}

/**
 * An event of a response, from the channel to the client. Order: `request`, `attempt`…, `loss`…, `head`, then blocks, `finish` once per
 * choice, `usage` any time after `head`; then the observable completes. A block has a start, deltas and an end. Blocks of one choice
 * interleave only if the provider interleaves tool calls. If the connection to the provider breaks, the observable errors.
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
  /** Begin of a block of text. */
  | (InBlock & { readonly type: 'text-start' })
  /** Next part of a text. */
  | (InBlock & { readonly type: 'text-delta'; readonly text: string; readonly logprobs?: readonly Logprob[] })
  /** Citation: a source of the text before it. */
  | (InBlock & { readonly type: 'citation'; readonly citation: Citation })
  /** End of a block of text. */
  | (InBlock & { readonly type: 'text-end'; readonly proof?: Proof })
  /** Begin of a refusal, as a text of its own. */
  | (InBlock & { readonly type: 'refusal-start' })
  /** Next part of the text of a refusal. */
  | (InBlock & { readonly type: 'refusal-delta'; readonly text: string })
  /** End of a refusal. */
  | (InBlock & { readonly type: 'refusal-end' })
  /** Begin of a block of reasoning. */
  | (InBlock & { readonly type: 'reasoning-start' })
  /** Next part of reasoning. */
  | (InBlock & { readonly type: 'reasoning-delta'; readonly text: string })
  /**
   * End of a block of reasoning. `proof` is the signature or encrypted text that the provider requires to accept the reasoning in a later
   * request.
   */
  | (InBlock & { readonly type: 'reasoning-end'; readonly proof?: Proof })
  /** Begin of a tool call. */
  | (InBlock & {
      readonly type: 'tool-start';
      readonly id: string;
      readonly name: string;
      /** True if the tool's input is free text instead of JSON. */
      readonly custom?: boolean;
      /** Present if the provider sends it at the beginning of the call. */
      readonly proof?: Proof;
    })
  /** Next part of the arguments: JSON, or free text. */
  | (InBlock & { readonly type: 'tool-delta'; readonly input: string })
  /** End of a tool call: its arguments are complete. */
  | (InBlock & { readonly type: 'tool-end' })
  /** Begin of an image, audio, a video or a file. */
  | (InBlock & {
      readonly type: 'media-start';
      readonly media: 'image' | 'audio' | 'video' | 'file';
      readonly mimeType?: string;
    })
  /** Next part of a medium. `data` is base64 in parts, each a multiple of four characters. `transcript` is the text of the audio. */
  | (InBlock & { readonly type: 'media-delta'; readonly data?: string; readonly transcript?: string })
  /** End of a medium. `url` is its location, in place of `data`. */
  | (InBlock & { readonly type: 'media-end'; readonly url?: string })
  /** End of one choice, with the reason. */
  | {
      readonly type: 'finish';
      readonly choice: number;
      readonly reason: FinishReason;
      /** The provider's own value. */
      readonly raw?: string;
      /** Format of `raw`. A client of the same format gets `raw` unchanged. */
      readonly format?: string;
      readonly stopSequence?: string;
      readonly extra?: Extra;
    }
  /**
   * Cumulative usage: the last event counts. In a session with several responses, `part` is the usage of the response that has just ended,
   * as the provider reported it.
   */
  | { readonly type: 'usage'; readonly usage: Usage; readonly part?: Usage }
  /** Result of an operation other than chat, in the shape of that operation: `{tokens: 12}` for count-tokens. */
  | { readonly type: 'result'; readonly value: OperationResult }
  /** Preview of an image that is being generated. `data` is base64. */
  | { readonly type: 'partial-image'; readonly data: string; readonly index: number; readonly extra?: Extra }
  /** Message of a WebSocket that passes through. */
  | ({ readonly type: 'message' } & SocketMessage)
  /** Models that the caller may use, in response to a model list request. Plugins can remove some. */
  | { readonly type: 'models'; readonly models: readonly ListedModel[] }
  /** Unchanged bytes of a provider's response. Before the translate stage, only of a non-streamed response that passes through. */
  | { readonly type: 'bytes'; readonly bytes: Buffer }
  /** One or more complete frames of a stream in the client's own format, unchanged (pass-through). */
  | { readonly type: 'frames'; readonly format: string; readonly bytes: Buffer }
  /**
   * A part of a response that exists in one format only, unchanged. The encoder of that format writes it; other encoders report it as
   * dropped.
   */
  | { readonly type: 'opaque'; readonly format: string; readonly value: JsonObject; readonly choice?: number }
  /** A part of the request or the response that was dropped because it could not be translated. */
  | { readonly type: 'loss'; readonly loss: Loss };

/**
 * Value of a `result` event, in the shape of the operation.
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

/** Type of an event. */
export type EventType = GatewayEvent['type'];

/** Types of events without content. While a response has only these, another target can still be tried. */
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
 * Returns true for an event with content of the response.
 *
 * @example
 * const reply = await peekFirst(await next(call), call.gate, saysSomething);
 */
export function saysSomething(event: GatewayEvent): boolean {
  if (event.type === 'text-delta' || event.type === 'reasoning-delta') return event.text !== '';
  return !beforeWords.has(event.type);
}
