/** Union of the requests of all operations. */
import type { SpeakRequest, TranscribeRequest } from './audio.ts';
import type { ChatRequest } from './chat.ts';
import type { EmbedRequest } from './embed.ts';
import type { ImageRequest } from './image.ts';
import type { ModerationRequest } from './moderation.ts';
import type { OcrRequest } from './ocr.ts';
import type { RealtimeRequest } from './realtime.ts';
import type { RerankRequest } from './rerank.ts';
import type { VideoRequest, VideoTaskRequest } from './video.ts';

/**
 * A decoded request of a client. `operation` is its discriminator.
 *
 * @example
 * const inputs = call.request.operation === 'embed' ? call.request.inputs : [];
 */
export type GatewayRequest =
  | ChatRequest
  | EmbedRequest
  | RerankRequest
  | ModerationRequest
  | OcrRequest
  | ImageRequest
  | TranscribeRequest
  | SpeakRequest
  | VideoRequest
  | VideoTaskRequest
  | RealtimeRequest;

/**
 * True for what has messages: a chat, a count of its tokens, its compaction.
 *
 * @example
 * if (!isChat(call.request)) return next(call);
 */
export function isChat(request: GatewayRequest): request is ChatRequest {
  return 'messages' in request;
}
