/**
 * What the plugins and channels of this repository take beyond `sluice`, as `sluice/internal`. Nothing is promised of it: any version may
 * change it. What stands here under a name of `sluice` too is the same thing seen whole.
 */

export { type Call, expandedBody, type Target } from './call.ts';
export { csvCell } from '../model/csv-cell.ts';
export { checkModelName } from '../formats/_shared/check.ts';
export { adaptSchema } from '../formats/_shared/json-schema/adapt.ts';
export { toSchemaSubset } from '../formats/_shared/json-schema/to-subset.ts';
export { settleForcedTools } from '../formats/_shared/forced-tools.ts';
export { settleFunctionTools } from '../formats/_shared/function-tools.ts';
export { ReportedPaths, describeLosses } from '../formats/_shared/losses.ts';
export { rewriteMembers } from '../json/edit-members.ts';
export { eachMember, valueEnd } from '../json/members.ts';
export { Nesting } from '../json/nesting.ts';
export { writeJson } from '../json/long/index.ts';
export { MarkedTexts } from '../json/outline/marks.ts';
export { JsonCutter } from '../formats/_shared/json-frames.ts';
export { sealMarks } from '../formats/_shared/proof.ts';
export { takesOff, thinksAbout } from '../model/thinks.ts';
export { sameJson } from '../json/same-json.ts';
export { moved } from '../formats/_shared/settings.ts';
export { isNamed } from '../formats/_shared/upstream-error/index.ts';
export { ChatStreamDecoder } from '../formats/chat-completions/stream-in/index.ts';
export { videos as generateContentVideos } from '../formats/generate-content/videos/index.ts';
export { readReport as readVideoOperation } from '../formats/generate-content/videos/report.ts';
export type { Format } from './format.ts';
export { checkJsonType, readBytes } from '../front/body.ts';
export { HeldMemory } from '../front/byte-budget.ts';
export { parseJsonBody, parseJsonLine } from '../front/json-body.ts';
export { formParserOf } from '../front/multipart.ts';
export { excludedMember, requestLosses } from '../front/sampling.ts';
export { listFormat } from '../front/client-format.ts';
export { hideSecretsIn } from '../settings/secret.ts';
export { problemOf } from '../config/runtime-config/refusals.ts';
export { changedPaths, fileEntries } from '../config/runtime-config/views.ts';
export { entryKinds, runtimeLimits } from '../state/runtime-config/index.ts';
export { plainName } from '../model/form.ts';
export { nestsTooDeeply } from '../json/parse.ts';
export { abandon, advance, isFinished, reportOf } from '../model/tasks.ts';
export { none as noAmounts, sum as sumOfAmounts } from '../money/ledger/amounts.ts';
export { reservedAt } from '../money/ledger/periods.ts';
export { thinksAtAll } from '../models/profile.ts';
export { codecFor } from '../routing/target.ts';
export { channelStanding } from '../routing/health/index.ts';
export { mostHedges } from '../routing/hedge.ts';
export { openAdminPassword } from '../state/admin-password.ts';
export { maxScopes, tokenDays, TokenMistake } from '../state/admin-tokens/index.ts';
export { openAdminTokens } from '../state/admin-tokens/open.ts';
export { apiKeyFields, budgetField, endUserBudgetField } from '../state/api-keys/fields.ts';
export { openResponseStore } from '../state/responses/open.ts';
export { AuditLog } from '../state/audit-log.ts';
export { FollowedEntries } from '../state/followed-entries.ts';
export { whileLocked } from '../state/lock.ts';
export { entriesOf } from '../state/stores.ts';
export { openObjectStore } from '../money/provider-objects/open.ts';
export { openTaskStore } from '../money/tasks.ts';
export { addressesIn, mayNameAddress } from '../upstream/addresses/find.ts';
export { refusedAddress } from '../upstream/addresses/index.ts';
export { encodeFormEnd, encodePartHead, formType, newBoundary } from '../upstream/form.ts';
export { forgetMedia } from '../upstream/guarded/media.ts';
export { CallReservation, clientLeft } from '../money/account/call-reservation.ts';
export { accountOf } from '../money/account/index.ts';
export { toolPrice } from './tool-price.ts';
export { rounded } from '../money/account/record.ts';
export { yieldToEventLoop } from '../state/database/yield-to-event-loop.ts';
export { connection } from './connection.ts';
export type { Next } from './define.ts';
export type { InternalTools } from '../config/internal-tools.ts';
export { defineChannel, definePlugin } from '../config/whole-definitions.ts';
export { errorTable } from './errors.ts';
export { checkMemberNames, checkRequestMembers } from './member-names.ts';
export { inOrder } from './operators.ts';
export { requestBody } from './endpoint.ts';
export { tunnelWatch } from './tunnel-watch.ts';
export { failureCause } from '../routing/failure-cause.ts';
export { UserConflict, UserMistake } from '../state/users/index.ts';
export { userFields } from '../state/users/records.ts';
export { isInScope } from '../state/api-keys/key-scope.ts';
export { OwnerMistake } from '../state/owners/index.ts';
export { attributionOf, endUserBudgets, endUserSeries, withEndUsers } from '../money/account/attribution.ts';
export { chargedHolders } from '../money/ledger/charged-holders.ts';
export {
  charged as chargedMicroDollars,
  chargedFor,
  factorFor,
  mostFor,
  priceFor,
} from '../money/ledger/pricing.ts';
export { ownerFields } from '../state/api-keys/fields.ts';
