/**
 * The API for channels with a wire format of their own, imported as `sluice/channel-kit`: codecs, requests of operations besides chat, errors
 * of providers, access tokens. It is versioned like `sluice`. A channel that uses a public format needs only `sluice`.
 */

// Codecs: encode requests for a provider, and decode its responses into events
export { defineCodec, type CodecSpec } from '../formats/_shared/define-codec.ts';
export type { Codec, EncodedRequest, EncodeTarget, Expected, Marks, RouteParams } from './codec.ts';
export type {
  BytesDecoder,
  Frame,
  Framing,
  ReplyContext,
  StreamDecoder,
  StreamEncoder,
  UsageTap,
  WholeEncoder,
  WireFrame,
} from './reply-codec.ts';
export { reportForeign } from '../formats/_shared/foreign.ts';
export { EventStreamCutter, eventStreamType, frameAsSse } from '../formats/_shared/event-stream.ts';
export { parseSse, splitSse, sseComment, SseCutter, writeSse } from '../formats/_shared/sse.ts';
export { frameType, readFrame } from '../formats/_shared/stream-frames.ts';
export { numberedId } from '../formats/_shared/tool-ids.ts';
export { noUsage, readTokenUsage } from '../formats/_shared/usage.ts';

// Chats of the public formats, for providers that speak one of these with words of their own
export { chatCodec } from '../formats/chat-completions/codec.ts';
export { responsesCodec } from '../formats/responses/codec.ts';

// Errors of providers
export {
  tellsError,
  throwIfError,
  truncatedResponse,
  unusableResponse,
  upstreamError,
} from '../formats/_shared/upstream-error/index.ts';
export { contentRefused } from '../formats/_shared/video-report.ts';
export { unsupportedContent } from './errors.ts';

// Embeddings and ranking
export type { EmbedInput, EmbedPurpose, EmbedRequest, EmbedResult, EmbedVector } from '../model/embed.ts';
export { embedCodec } from '../formats/embeddings/codec.ts';
export { requireText } from '../formats/embeddings/request.ts';
export { estimateEmbed, joinEmbed, splitEmbed } from '../formats/_shared/embed.ts';
export { readVectors } from '../formats/_shared/vectors.ts';
export type { RerankRequest, RerankResult } from '../model/rerank.ts';
export { decodeRerank, documentText, estimateRerank, reportRerankLimits } from '../formats/_shared/rerank.ts';

// Images and sound
export type { Form, Upload } from '../model/form.ts';
export type { GeneratedImage, ImageInput, ImageRequest, ImageResult } from '../model/image.ts';
export type { SpeakRequest, TranscribeRequest, Transcript, TranscriptSegment } from '../model/audio.ts';
export { speechCodec } from '../formats/audio/codec.ts';
export { asWave } from '../formats/_shared/speech.ts';
export { uploadOf } from '../formats/_shared/video-upload.ts';
export { ExactBytes } from './exact-bytes.ts';
export { parseDataUrl, toDataUrl } from '../formats/_shared/data-url.ts';

// Videos
export type { VideoReport, VideoRequest, VideoState, VideoTaskRequest } from '../model/video.ts';
export {
  defineVideoCodecs,
  videoStateReader,
  type VideoCodecs,
  type VideoCodecSpec,
} from '../formats/_shared/video-codec.ts';
export { addMetadata, imageText, limitImages, reportVideoSettings } from '../formats/_shared/video-fields.ts';
export { videoError } from '../formats/_shared/video-report.ts';
export {
  ratioOfSize,
  requestedRatio,
  requestedResolution,
  requestedSize,
} from '../formats/_shared/video-sizes.ts';
export { defaultSeconds } from '../formats/_shared/video-units.ts';

// Moderation and documents
export type { ModerationRequest } from '../model/moderation.ts';
export type { OcrRequest } from '../model/ocr.ts';

// Sessions over WebSockets
export type { SocketMessage } from '../model/realtime.ts';
export type { SessionWatch } from './routes.ts';
export { appendedLength, audioLength, leadingType } from '../formats/realtime/wire.ts';

// Credentials that expire
export { bearerTokens, type AccessToken, type BearerTokens } from '../upstream/credentials/access-tokens.ts';
export { withAuthorization, type Authorizing } from '../upstream/credentials/authorization.ts';
export { oauthTokens, type TokenEndpoint } from '../upstream/credentials/oauth-tokens.ts';
export { CredentialsError, RenewedCredentials, type Renewing } from '../upstream/credentials/renewed.ts';

// The gateway
export { version } from '../config/installation/home.ts';

// Bytes and tables
export { editMembers, editMembersOf, type MemberEdits } from '../json/edit-members.ts';
export { mediaKind } from '../model/media-kind.ts';
export { lookupTable } from '../model/lookup-table.ts';
