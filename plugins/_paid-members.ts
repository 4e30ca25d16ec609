/** Refuses requests that name models which the API key may not use, or whose cost has no known bound where the key has a budget in dollars. */
import { paidMembers, type PaidMember } from './_find-paid-members.ts';
import { GatewayError, matchesModel, type ApiKey, type JsonObject } from 'sluice';

/** Returns true for a key with a budget in dollars. */
export function hasDollarBudget({ budgets }: Pick<ApiKey, 'budgets'>): boolean {
  return budgets?.some(({ unit }) => unit === 'micro-dollar') === true;
}

/** Returns the restriction of a key that an unknown model would break, as the end of a sentence; undefined if there is none. */
export function boundBy(key: Pick<ApiKey, 'budgets' | 'models'>): string | undefined {
  if (key.models !== undefined) return 'may use certain models alone';
  return hasDollarBudget(key) ? 'has a budget in dollars' : undefined;
}

/** Options of {@link checkPaidMembers}: where the members of the request take effect. */
export interface PaidContext {
  /** Path of the request in the body of the client. */
  readonly path?: string;
  /** `batch`: in a batch, whose services must be counted by its results. `elsewhere`: where uses of services are not charged at all. */
  readonly runs?: 'batch' | 'elsewhere';
}

/**
 * Throws 403 for a request that names a model which the key may not use, or by which the provider chooses one, and for one whose cost has no
 * bound where the key has a budget in dollars. Keys that are bound by neither may send everything.
 */
export function checkPaidMembers(
  key: ApiKey | undefined,
  body: JsonObject,
  { path = '', runs }: PaidContext = {},
): void {
  if (key === undefined || boundBy(key) === undefined) return;
  let members = runs === 'batch' ? membersOfBatch(body) : paidMembers(body);
  // Prices of service tiers are kept where calls are charged one by one.
  if (runs === 'elsewhere') members = members.map((one) => (one.kind === 'service' ? unbounded(one) : one));
  if (runs !== undefined) members = members.map((one) => (one.kind === 'tier' ? unbounded(one) : one));
  checkMembers(key, path === '' ? members : members.map((one) => ({ ...one, path: `${path}.${one.path}` })));
}

/**
 * Returns the paid members of a request in a batch, which goes to the provider as it is. A service counts as unbounded there unless the request
 * states its maximum number of uses, where its format has a member for that, and the results tell the uses.
 */
export function membersOfBatch(request: JsonObject, format?: string): readonly PaidMember[] {
  const isLimited = toolCallLimit(request, format) !== undefined;
  return paidMembers(request).map((one) => {
    const isSearch =
      one.service === 'web-search' && (one.maxUses !== undefined || isGrounding.test(one.path));
    return one.kind !== 'service' || isLimited || isSearch ? one : unbounded(one);
  });
}

/** Returns the maximum number of tool calls that a request states. Only the format of responses has a member for it. */
export function toolCallLimit(body: JsonObject, format: string | undefined): number | undefined {
  const { max_tool_calls: limit } = body;
  return format === 'responses' && typeof limit === 'number' && limit >= 0 ? Math.ceil(limit) : undefined;
}

/** The search of generateContent: its format has no member for a limit. */
const isGrounding = /google_?search/i;

function unbounded(member: PaidMember): PaidMember {
  return { ...member, kind: 'unbounded' };
}

/** Does the same as {@link checkPaidMembers} for members that were found before. */
export function checkMembers(key: ApiKey, members: readonly PaidMember[]): void {
  const { models: allowed } = key;
  for (const { path, kind, models } of members) {
    const stranger = allowed && models.find((model) => !matchesModel(allowed, model));
    if (stranger !== undefined)
      throw notAllowed(
        `This API key has no access to the model ${stranger.slice(0, 200)}, which "${path}" names.`,
        path,
      );
    if (kind === 'model' && models.length === 0 && allowed !== undefined)
      throw notAllowed(
        `This API key may use certain models alone, and "${path}" lets the provider choose one. Name a model, or remove it.`,
        path,
      );
    if (isUnbounded(kind, models) && hasDollarBudget(key))
      throw notAllowed(
        `This API key has a budget in dollars, and what "${path}" costs is not known before the call. Remove it, or use a key without such a budget.`,
        path,
      );
  }
}

/** Returns true for members that a budget in dollars cannot be kept with. A service has a price for its own model, and for no other. */
function isUnbounded(kind: PaidMember['kind'], models: readonly string[]): boolean {
  return kind === 'unbounded' || kind === 'model' || (kind === 'service' && models.length > 0);
}

function notAllowed(message: string, param: string): GatewayError {
  return new GatewayError('model_not_allowed', message, { param: param.slice(0, 200) });
}
