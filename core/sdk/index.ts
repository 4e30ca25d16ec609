/**
 * What authors of plugins, channels and configs import as `sluice`. It is versioned: nothing here changes its meaning or goes without a line
 * in the changelog. `sluice/channel-kit` is for channels with a wire format of their own,
 * `sluice/testing` for tests; what this repository's own plugins need beyond them is `sluice/internal`.
 */

// Plugins
export type { Call, CallEdits, RequestTexts, Target, Wire } from './author/call.ts';
export type {
  CallAttempt,
  CallCost,
  CallOutcome,
  CallProgress,
  CallResponse,
  CallTimes,
  SettledCall,
} from './author/outcome.ts';
export type { ClientUrlRequest, FetchClientUrl } from './author/client-url.ts';
export {
  definePlugin,
  type Handler,
  type Next,
  type Plugin,
  type PluginEntry,
  type PluginSpec,
  type Reads,
  type ReadsOf,
  type SignInRequest,
  type Stage,
} from './author/plugin.ts';
export type { GatewayNotices } from './author/notices.ts';
export type { WorkerAnswer, WorkerAnswers, Workers } from './author/workers.ts';
export type { PluginTime, WatchPlugins } from './author/plugin-time.ts';
export type { CountedSeries, PluginCounter, PluginMetrics } from './author/metrics.ts';
export type {
  BudgetStanding,
  Operations,
  OperationsStatus,
  ProcessFigures,
  ProcessLoad,
  TargetStanding,
} from './author/operations.ts';
export type {
  DetachedCall,
  DirectCall,
  Endpoint,
  Log,
  PluginTools,
  Prices,
  SubcallRequest,
  ToolRun,
} from './author/tools.ts';
export type {
  AdminChange,
  AdminRequest,
  AdminRouteHandler,
  ClientAddress,
  RouteContext,
  RouteHandler,
} from './author/routes.ts';
export type { ApiKeys, FoundApiKey } from './author/api-keys.ts';
export type { RateGrant, RateRule, Rates, RateState, RateVerdict, SlotRule } from './author/rates.ts';
export { InFlight } from './in-flight.ts';
export { onDetached } from './on-detached.ts';
export { adminTokenPrefix } from './admin-token.ts';
export type { Candidate, Catalog, Health } from './author/catalog.ts';
export type { Stores } from './author/stores.ts';
export type { NearestVector, StoredVector, VectorLimits, VectorStore } from './author/vectors.ts';
export type { ServiceAnswer, ServiceRequest, ServiceStream, Services } from './author/services.ts';
export { callKey, type CallKey } from './call-key.ts';
export { chatOf, chatOutlineOf } from './call.ts';
export type { Affinity } from './affinity.ts';
export { caller } from './caller.ts';
export { setClientCredential, type ClientCredential } from './client-credential.ts';
export { checkMessages, type MessageCheck } from './check-messages.ts';
export { addressList, type AddressList } from '../model/addresses.ts';
export type { ApiKey } from './api-key.ts';
export type { Budget, EndUserBudget, HeldBudget, ModelPrice, PriceRule } from './budget.ts';
export { ownerName, type Owner, type OwnerKind } from './owner.ts';
export { matchesName } from './name-patterns.ts';
export { intersectPatterns, matchesModel, mayUseSome, patternsOverlap } from './allowed-models.ts';
export { foldName } from './member-names.ts';
export { chatFormats, formatFor, targetIn } from './spoken-format.ts';
export { requirePackage } from './optional-package.ts';
export { addReplyHeaders, addReplyTrailers, type ReplyTrailers } from './reply-headers.ts';
export type { Sealer } from './sealer.ts';
export { addUpstreamHeaders } from './upstream-headers.ts';

// Streams
export type { Observing } from './followed-reply.ts';
export { Gate, type Valve } from './gate.ts';
export { eachInOrder, gathered, observe, onUsage, peekFirst, startWithEvents } from './operators.ts';
export {
  mapText,
  transformText,
  type TextBlockInfo,
  type TextKind,
  type TextTransformer,
} from './text-operators.ts';
export { holdBack, type Keeper, type KeepVerdict } from './hold-back.ts';
export { HeldBytes } from '../model/held-bytes.ts';
export { stringEnd } from '../json/strings.ts';
export { jsonLines } from './json-lines.ts';
export { WholeBytes, wholeBytes } from './whole-bytes.ts';

// Secrets
export { hideSecret, maskSecrets } from '../log.ts';
export { defineSecrets } from './author/define-secrets.ts';
export type { SecretRequest, SecretSource, SecretsSpec, SecretTools } from './author/secrets.ts';

// Errors
export { upstreamFailureOf, type UpstreamFailure, type UpstreamFault } from './upstream-failure.ts';
export {
  GatewayError,
  missingValue,
  toGatewayError,
  wrongType,
  wrongValue,
  type ErrorCode,
  type ErrorDetails,
} from './errors.ts';

// Channels
export type {
  Download,
  HttpClient,
  HttpRequest,
  SocketClient,
  UpstreamSocketRequest,
} from './author/http.ts';
export type { AnsweringParts, AnsweringSpec, AnswerRequest } from './author/answering.ts';
export { defineChannel } from './author/define-channel.ts';
export {
  type ChannelEntry,
  type ChannelKind,
  type ChannelConfig,
  type ChannelOptions,
  type OAuth2Identity,
  type ChannelParts,
  type ChannelSpec,
  type DeviceLogin,
  type ChannelTools,
} from './author/channel.ts';
export type { Codecs, RateStanding } from './format.ts';
export type { SessionWatch } from './routes.ts';
export type { BodyStream, ChannelKey, KeyRegion, PricedModel, Upstream, UpstreamRequest } from './channel.ts';
export {
  plainMember,
  type RefusedMember,
  type RefusedMembers,
  type TakenMember,
} from '../model/refused-member.ts';
export type { ModelTraits } from '../model/traits.ts';

// The config
export { env } from '../settings/environment.ts';
export { secret, secretUrl } from '../settings/secret.ts';
export { secretFrom } from '../settings/secret-reference.ts';
export { type GatewayConfig } from './config.ts';
export { defineConfig } from './define.ts';

// What flows
export type { Operation } from './format.ts';
export type {
  Block,
  ChatRequest,
  ChatSettings,
  Citation,
  Logprob,
  MediaBlock,
  Message,
  ReasoningBlock,
  Tool,
  ToolCallBlock,
  ToolChoice,
  ToolResultBlock,
} from '../model/chat.ts';
export type {
  AnswerEvent,
  AttemptEvent,
  FailureCause,
  FinishReason,
  GatewayEvent,
  ListedModel,
  OperationResult,
} from '../model/event.ts';
export type { Extra, Loss, Proof } from '../model/extra.ts';
export { parseJson, parseObject } from '../json/parse.ts';
export { isObject, type JsonObject, type JsonValue } from '../model/json.ts';
export type { Form, Upload } from '../model/form.ts';
export type { SocketMessage } from '../model/realtime.ts';
export type { Reasoning } from '../model/reasoning.ts';
export { isChat, type GatewayRequest } from '../model/request.ts';
export { saysSomething } from '../model/event.ts';
export {
  sumUnits,
  sumUsage,
  type Modality,
  type ModelUsage,
  type TokenCounts,
  type TokensByModality,
  type Units,
  type Usage,
  type UsageByModality,
} from '../model/usage.ts';
export { countTokens, estimateInput, estimateTokens, wordBytes } from '../tokens/index.ts';
