/** Admin endpoints for API keys. */
import {
  GatewayError,
  matchesModel,
  type ApiKey,
  type JsonObject,
  type RouteContext,
  type Budget,
  patternsOverlap,
} from 'sluice';
import { OwnerMistake, type InternalTools } from 'sluice/internal';
import type { ApiKeyChanges } from './core-types.ts';
import type { Actor } from './access/actor.ts';
import type { Scope } from './access/scope.ts';
import { versionCheck } from './access/version.ts';
import type { Audit, Author } from './audit.ts';
import { editedFields, viewOfKey } from './key-view.ts';
import { checkSpendQuery, mostExpensive, spentBy } from './key-spend.ts';
import { namesOf } from './names.ts';
import { orInvalid } from './or-invalid.ts';
import type { AuditEntry, KeyView } from './schemas/index.ts';
import type { Handlers } from './serve.ts';

type KeyTools = Pick<InternalTools, 'apiKeys' | 'ledger' | 'catalog' | 'prices' | 'settings' | 'usageLog'>;
type KeyPage = Awaited<ReturnType<KeyTools['apiKeys']['page']>>;

/** Which key is meant, and by whom. */
interface Which {
  readonly id: string;
  readonly scope: Scope;
}

/** The request, whose `if-match` may name the version that is changed. */
interface WithContext {
  readonly ctx: RouteContext;
}

type KeyQuery = Parameters<Handlers<'listKeys'>['listKeys']>[0]['query'];

/** Number of keys whose budgets are looked up at the same time. */
const atOnce = 8;

/** Returns the routes about API keys. */
export function keyHandlers(
  tools: KeyTools,
  audit: Audit,
): Handlers<
  | 'listKeys'
  | 'findKey'
  | 'createKey'
  | 'updateKey'
  | 'rotateKey'
  | 'endOldSecret'
  | 'enableKey'
  | 'disableKey'
  | 'deleteKey'
> {
  const { apiKeys } = tools;
  const access = new KeyAccess(tools, audit);
  return {
    listKeys: ({ query, scope }) => listKeys(query, scope, tools),
    findKey: async (request) => viewOfKey(await access.keyOf(request), tools),
    async createKey(request) {
      const body = ownedBy(request.actor, request.body);
      checkExpiry(body.expiresAt);
      request.scope.checkKeyOwners(body);
      await checkCount(request.actor, tools);
      const { record, value } = await orInvalid(
        OwnerMistake,
        apiKeys.create({ ...body, budgets: orNone(body.budgets) }),
      );
      await audit.note(request, {
        action: 'key-create',
        target: record.id,
        after: editedFields(record),
      });
      return { key: await viewOfKey(record, tools), value, warnings: warningsOf(record, tools) };
    },
    updateKey(request) {
      checkExpiry(request.body.expiresAt);
      const changes = Object.entries(request.body).map(([name, value]) => [
        name,
        name === 'budgets' ? orNone(request.body.budgets) : (value ?? undefined),
      ]);
      return access.change(request, 'key-update', Object.fromEntries(changes) as ApiKeyChanges);
    },
    enableKey: (request) => access.change(request, 'key-enable', { enabled: true }),
    disableKey: (request) => access.change(request, 'key-disable', { enabled: false }),
    ...secretHandlers(access, tools, audit),
    async deleteKey(request) {
      const { id } = request;
      const before = await access.keyOf(request);
      const checkSeen = stillSeen(request);
      const checkVersion = versionCheck(request.ctx);
      const removed = await access.orGone(
        request,
        apiKeys.revoke(before.id, (current) => {
          checkSeen(current);
          checkVersion(editedFields(current));
        }),
      );
      await audit.note(request, {
        action: 'key-delete',
        target: id,
        before: editedFields(removed),
      });
      return { ok: true };
    },
  };
}

/** Returns the routes about secrets of keys. */
function secretHandlers(
  access: KeyAccess,
  tools: KeyTools,
  audit: Audit,
): Handlers<'rotateKey' | 'endOldSecret'> {
  const { apiKeys } = tools;
  return {
    async rotateKey(request) {
      const {
        id,
        body: { graceSeconds },
      } = request;
      const before = await access.keyOf(request);
      const { record, value } = await access.orGone(
        request,
        apiKeys.rotate(before.id, graceSeconds * 1_000, stillSeen(request)),
      );
      await audit.note(request, {
        action: 'key-rotate',
        target: id,
        after: { ...ownersOf(record), ...(graceSeconds > 0 && { graceSeconds }) },
      });
      return { key: await viewOfKey(record, tools), value, warnings: warningsOf(record, tools) };
    },
    async endOldSecret(request) {
      const { id } = request;
      const key = await access.keyOf(request);
      if (!(await access.orGone(request, apiKeys.endOldSecret(key.id, stillSeen(request)))))
        throw new GatewayError('not_found', 'This key has no old secret that is still valid.');
      await audit.note(request, { action: 'key-old-secret-end', target: id, after: ownersOf(key) });
      return viewOfKey(key, tools);
    },
  };
}

/** Finds keys that an actor may see, and changes them. */
class KeyAccess {
  readonly #tools: KeyTools;
  readonly #audit: Audit;

  constructor(tools: KeyTools, audit: Audit) {
    this.#tools = tools;
    this.#audit = audit;
  }

  /** Finds a key only by its id, because a path must not match a name or a secret. */
  async keyOf({ id, scope }: Which): Promise<ApiKey> {
    const found = await this.#tools.apiKeys.byId(id);
    if (found === undefined || !scope.seesKey(found)) throw noKey(id);
    return found;
  }

  /** Runs `work`. If it fails because the key was deleted meanwhile, throws the 404 error of the key, because that is no failure of the gateway. */
  async orGone<T>(which: Which, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      await this.keyOf(which);
      throw error;
    }
  }

  async change(request: Author & Which & WithContext, action: AuditEntry['action'], changes: ApiKeyChanges) {
    const before = await this.keyOf(request);
    const { scope } = request;
    const checkVersion = versionCheck(request.ctx);
    const checkSeen = stillSeen(request);
    const check = (key: ApiKey): void => {
      checkSeen(key);
      if (changesOwner(key, changes)) scope.checkKeyOwners({ ...key, ...changes } as ApiKey);
    };
    check(before);
    const changed = await orInvalid(
      OwnerMistake,
      this.orGone(
        request,
        this.#tools.apiKeys.update(before.id, changes, (current) => {
          check(current);
          checkVersion(editedFields(current));
        }),
      ),
    );
    await this.#audit.note(request, {
      action,
      target: before.id,
      before: editedFields(before),
      after: editedFields(changed),
    });
    const { lastUsedAt } = before;
    const key = await viewOfKey(lastUsedAt === undefined ? changed : { ...changed, lastUsedAt }, this.#tools);
    return { key, warnings: warningsOf(changed, this.#tools) };
  }
}

/** Returns a check of a key right before it is changed: it may have been given to somebody else since it was looked at. */
function stillSeen({ scope }: Which): (key: ApiKey) => void {
  return (key) => {
    if (!scope.seesKey(key)) throw noKey(key.id);
  };
}

async function listKeys(
  query: KeyQuery,
  scope: Scope,
  tools: KeyTools,
): Promise<{ keys: KeyView[]; next: string | undefined }> {
  const { limit, after, search, owner, sort } = query;
  if (sort === 'spend') checkSpendQuery(query);
  const { keys, next }: KeyPage =
    sort === 'spend'
      ? { keys: await mostExpensive(tools, scope, { owner, limit }) }
      : await tools.apiKeys.page(limit, after, search, owner, scope.keys);
  const spent = query.spend === 'true' || sort === 'spend' ? await spentBy(tools, keys) : undefined;
  const views: KeyView[] = [];
  const old = await tools.apiKeys.oldSecretsOf(keys);
  // A few at a time: hundreds of questions at once would keep calls from the database.
  for (let index = 0; index < keys.length; index += atOnce) {
    const some = keys.slice(index, index + atOnce);
    // oxlint-disable-next-line no-await-in-loop
    for (const view of await Promise.all(
      some.map((key, at) => viewOfKey(key, tools, old[index + at] ?? null)),
    ))
      views.push(spent === undefined ? view : { ...view, spent: spent(view.id) });
  }
  return { keys: views, next };
}

function noKey(id: string): GatewayError {
  return new GatewayError('not_found', `There is no key ${id.slice(0, 100)}.`);
}

/** Returns the owners of a key, for the audit: they say whom a change concerns. */
function ownersOf({ team, member }: ApiKey): JsonObject {
  return { ...(team !== undefined && { team }), ...(member !== undefined && { member }) };
}

function changesOwner(before: ApiKey, changes: ApiKeyChanges): boolean {
  return (['team', 'member'] as const).some((name) => name in changes && changes[name] !== before[name]);
}

/** Sets the member as the owner of a key that the member creates, unless the key belongs to a team that the member leads. */
function ownedBy<Body extends { readonly team?: string; readonly member?: string }>(
  { role, member, teams }: Actor,
  body: Body,
): Body {
  if (role !== 'member' || body.member !== undefined || member === undefined) return body;
  return teams.some(({ team, lead }) => lead && team === body.team) ? body : { ...body, member };
}

/** Throws 400 where a member has as many keys as it may. Those who create at the same time may have a few more. */
async function checkCount({ role, member }: Actor, { apiKeys, settings }: KeyTools): Promise<void> {
  if (role !== 'member' || member === undefined) return;
  const { maxKeys } = settings.members;
  if ((await apiKeys.count({ member })) >= maxKeys)
    throw new GatewayError('invalid_request', `You have reached the limit of ${maxKeys} keys.`);
}

/** Returns undefined for an empty list of budgets, because it means no budget. */
function orNone(budgets: readonly Budget[] | null | undefined): readonly Budget[] | undefined {
  return budgets === null || budgets?.length === 0 ? undefined : budgets;
}

function checkExpiry(expiresAt: number | null | undefined): void {
  if (expiresAt === undefined || expiresAt === null || expiresAt > Date.now()) return;
  throw new GatewayError('invalid_value', 'expiresAt must lie in the future, in milliseconds since 1970.', {
    param: 'expiresAt',
  });
}

/** Returns warnings for settings that are allowed but look like a mistake. */
function warningsOf({ models, budgets }: ApiKey, { catalog, prices }: KeyTools): string[] {
  const served = catalog.channels.flatMap(namesOf);
  const lonely = models?.filter((pattern) => !served.some((one) => patternsOverlap(pattern, one))) ?? [];
  const warnings = lonely.map((pattern) => `No channel names a model that ${pattern} matches.`);
  if (budgets?.some(({ unit }) => unit === 'micro-dollar') === true) {
    const unpriced = catalog
      .list()
      .map(({ id }) => id)
      .filter((id) => matchesModel(models, id) && prices.unpriced(id));
    const some = unpriced.slice(0, 3).join(', ');
    const others = unpriced.length > 3 ? ` and ${unpriced.length - 3} more` : '';
    if (unpriced.length > 0)
      warnings.push(
        `With a budget in dollars this key is refused for models without a price: ${some}${others}.`,
      );
  }
  return warnings;
}
