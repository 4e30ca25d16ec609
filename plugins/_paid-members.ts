import { GatewayError, type ApiKey, type JsonObject } from 'sluice';
import { matchesModel, paidMembers, type PaidMember } from 'sluice/internal';

/** True for a key with a budget in dollars. */
export function hasDollarBudget({ budgets }: Pick<ApiKey, 'budgets'>): boolean {
  return budgets?.some(({ unit }) => unit === 'micro-dollar') === true;
}

/** Returns what a key is bound by that an unknown model would break; undefined where it is bound by nothing of the kind. */
export function boundBy(key: Pick<ApiKey, 'budgets' | 'models'>): string | undefined {
  if (key.models !== undefined) return 'may use certain models alone';
  return hasDollarBudget(key) ? 'has a budget in dollars' : undefined;
}

/**
 * Throws 403 for a request that names a model which the key may not use, or by which the provider chooses one, and for one whose cost has no
 * bound where the key has a budget in dollars. Keys that are bound by neither may send everything. `path`: where the request stands in the
 * body of the client.
 */
export function checkPaidMembers(key: ApiKey | undefined, body: JsonObject, path = ''): void {
  if (key === undefined || boundBy(key) === undefined) return;
  const members = paidMembers(body);
  checkMembers(key, path === '' ? members : members.map((one) => ({ ...one, path: `${path}.${one.path}` })));
}

/** As {@link checkPaidMembers}, for members that were found before. */
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

/** True for members that a budget in dollars cannot be kept with. A service has a price for its own model, and for no other. */
function isUnbounded(kind: PaidMember['kind'], models: readonly string[]): boolean {
  return kind === 'unbounded' || kind === 'model' || (kind === 'service' && models.length > 0);
}

function notAllowed(message: string, param: string): GatewayError {
  return new GatewayError('model_not_allowed', message, { param: param.slice(0, 200) });
}
