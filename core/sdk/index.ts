/** The public surface of Sluice: all that plugins, channels and configs import. They import it as `sluice`. */

export { version } from '../config/installation/home.ts';
export { addressList, isAddressRange, plainAddress, type AddressList } from '../model/addresses.ts';
export { caller } from './caller.ts';
export {
  callKey,
  chatOf,
  expandedBody,
  type Affinity,
  type Call,
  type CallEdits,
  type CallKey,
  type Wire,
} from '../call/call.ts';
export { connection, type Connection } from './connection.ts';
export { detach, followDetached, type Detached, type Follower } from '../call/detached.ts';
export type { Channel, ChannelKey, SystemPrompt, Upstream, UpstreamRequest } from './channel.ts';
export { env, type GatewayConfig, type Settings } from '../config/config.ts';
export {
  defineChannel,
  defineConfig,
  defineFormat,
  definePlugin,
  type ChannelEntry,
  type ChannelKind,
  type ChannelOptions,
  type ChannelParts,
  type ChannelSpec,
  type ChannelTools,
  type Endpoint,
  type Handler,
  type Next,
  type Plugin,
  type PluginEntry,
  type PluginSpec,
  type PluginTools,
  type Reads,
  type RouteHandler,
  type Stage,
} from './define.ts';
export {
  cannotCarry,
  errorTable,
  GatewayError,
  missing,
  toGatewayError,
  wrongType,
  wrongValue,
  type ErrorCode,
  type ErrorDetails,
} from './errors.ts';
export type {
  BytesDecoder,
  Codec,
  Codecs,
  Edits,
  EncodedRequest,
  EncodeTarget,
  Expected,
  Format,
  Frame,
  Framing,
  Operation,
  PlainReply,
  RateStanding,
  ReplyContext,
  RequestOf,
  Route,
  RouteParams,
  StreamDecoder,
  TunnelNames,
  TunnelRoute,
  TunnelWatch,
  StreamEncoder,
  UsageTap,
  WholeEncoder,
  WireFrame,
} from './format.ts';
export { expectedOfInputs, splitInputs } from '../formats/_shared/embed.ts';
export { loseForeign } from '../formats/_shared/foreign.ts';
export { oneShot, throwIfError, type OneShot } from '../formats/_shared/one-shot.ts';
export { decodeScores, expectedOfDocuments, textOfDocument } from '../formats/_shared/rerank.ts';
export { readPlainUsage } from '../formats/_shared/usage.ts';
export { asWave } from '../formats/_shared/speech.ts';
export { readVector } from '../formats/_shared/vectors.ts';
export { embedCodec } from '../formats/embeddings/codec.ts';
export { onlyText } from '../formats/embeddings/request.ts';
export { inClientWords } from '../formats/_shared/client-words.ts';
export { numbered } from '../formats/_shared/tool-ids.ts';
export { sealMarks } from '../formats/_shared/proof.ts';
export { cutShort } from '../formats/_shared/stream-frames.ts';
export { isNamed, tellsError } from '../formats/_shared/told-error.ts';
export { upstreamError, upstreamFailureOf } from '../formats/_shared/upstream-error.ts';
export type { Observing } from '../call/followed-reply.ts';
export { Gate, type Valve } from './gate.ts';
export { appended } from '../call/appended.ts';
export { InFlight } from '../call/in-flight.ts';
export { holdBack, type Keeper, type Verdict } from './hold-back.ts';
export { checkJsonType, parseJsonBody, readBytes } from '../front/body.ts';
export { stringEnd } from '../formats/_shared/json-bytes.ts';
export { createClientAddress } from '../front/client-address.ts';
export { forgetMedia, type FetchMedia, type Media, type MediaWish } from '../upstream/guarded/media.ts';
export { mediaKind } from '../model/media-kind.ts';
export { asSse, EventStreamCutter, eventStreamType } from '../formats/_shared/event-stream.ts';
export { HeldBytes } from '../formats/_shared/held-bytes.ts';
export { JsonCutter, writeNdjson } from '../formats/_shared/json-frames.ts';
export { parseSse, splitSse, sseComment, SseCutter, writeSse } from '../formats/_shared/sse.ts';
export type { HttpClient, HttpRequest } from '../upstream/send.ts';
export type { UpstreamSocketRequest, UpstreamSockets } from '../upstream/socket.ts';
export { hideSecret, maskSecrets, type Log } from '../log.ts';
export { lostLogLines } from '../log/output.ts';
export * from '../model/audio.ts';
export * from '../model/chat.ts';
export * from '../model/embed.ts';
export * from '../model/event.ts';
export * from '../model/extra.ts';
export * from '../model/form.ts';
export * from '../model/image.ts';
export * from '../model/json.ts';
export * from '../model/moderation.ts';
export * from '../model/realtime.ts';
export * from '../model/reasoning.ts';
export * from '../model/request.ts';
export * from '../model/rerank.ts';
export * from '../model/traits.ts';
export * from '../model/usage.ts';
export * from '../model/video.ts';
export { Notices, type NoticeEvents } from './notices.ts';
export { eachInOrder, gathered, observe, onUsage, peekFirst, startWithEvents } from './operators.ts';
export type { Load } from '../front/overload.ts';
export type { Answerer, Gathered, PeerAnswer, Peers, Totals } from '../state/links/peers.ts';
export type { Processes, ProcessesStatus, ReloadOutcome, WorkerStatus } from '../state/links/processes.ts';
export { foldedName } from './member-names.ts';
export { addReplyHeaders } from './reply-headers.ts';
export { askedAt, failedAttempts, taskTarget } from '../routing/attempts.ts';
export type { Candidate, Catalog } from '../routing/catalog.ts';
export type { DirectCall, DirectCalls } from '../routing/direct-call.ts';
export {
  channelStanding,
  type Health,
  type HealthChange,
  type PlaceHealth,
  type PlaceName,
  type Standing,
  type Visit,
} from '../routing/health/index.ts';
export { mostHedges } from '../routing/hedge.ts';
export type { Target } from '../routing/target.ts';
export type { TaskCalls } from '../routing/task-call.ts';
export type { GuardedStream } from '../upstream/guarded/stream.ts';
export { charge, reachedProviders, sending, settles, type Charge } from './charge.ts';
export * from '../model/usage-record.ts';
export { noPriceError, type Cost, type Prices, type ServedBy } from '../money/prices/index.ts';
export { openAdminPassword, type AdminPassword } from '../state/admin-password.ts';
export {
  matchesModel,
  type ApiKey,
  type ApiKeyChanges,
  type ApiKeys,
  type Budget,
  type NewApiKey,
} from '../state/api-keys.ts';
export { reservedAt } from '../money/ledger/periods.ts';
export type { Bookkeeper, BudgetState, Ledger, Reservation, Settlement } from '../money/ledger/index.ts';
export type { RateGrant, RateRule, Rates, RateState, RateVerdict, SlotRule } from '../money/rates/index.ts';
export type { UsageFilter, UsageGrouping, UsageLog, UsagePage, UsageSums } from '../money/usage-log/index.ts';
export { openResponseStore } from '../state/responses/open.ts';
export {
  type ItemPage,
  type ItemQuery,
  type ResponseStore,
  type StoredConversation,
  type StoredResponse,
} from '../state/responses/index.ts';
export { openSealer, type Sealer } from '../state/sealer.ts';
export {
  openTaskStore,
  type TaskLease,
  type TaskPage,
  type TaskQuery,
  type TaskStore,
} from '../state/tasks/index.ts';
export { abandon, advance, isFinished, reportOf, type Task } from '../model/tasks.ts';
export { entriesOf, type Stores } from '../state/stores.ts';
export { estimateTokens, estimateInput, countTokens, wordBytes } from '../tokens/index.ts';
export { tunnelWatch } from './tunnel-watch.ts';
