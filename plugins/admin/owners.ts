/** Admin endpoints for organisations, teams, members and service accounts. */
import { GatewayError, type JsonObject, type Owner, type RouteContext, ownerName } from 'sluice';
import { OwnerMistake, type InternalTools } from 'sluice/internal';
import type { OwnerChanges } from './core-types.ts';
import type { Scope } from './access/scope.ts';
import { versionCheck, versionOf } from './access/version.ts';
import type { Audit, Author } from './audit.ts';
import { budgetStates } from './budget-states.ts';
import { orInvalid } from './or-invalid.ts';
import type { AuditEntry, OwnerView } from './schemas/index.ts';
import type { Handlers } from './serve.ts';

type OwnerTools = Pick<InternalTools, 'apiKeys' | 'ledger'>;

/** Number of owners whose budgets are looked up at the same time. */
const atOnce = 8;

/** Returns the routes about owners of API keys. */
export function ownerHandlers(
  tools: OwnerTools,
  audit: Audit,
): Handlers<'listOwners' | 'findOwner' | 'createOwner' | 'updateOwner' | 'deleteOwner'> {
  const { owners } = tools.apiKeys;
  const access = new OwnerAccess(tools, audit);
  return {
    async listOwners({ scope, query: { kind, organisation, search, limit, after } }) {
      const sought = search?.toLowerCase();
      const all = owners
        .list()
        .filter(
          (one) =>
            scope.seesOwner(one) &&
            (kind === undefined || one.kind === kind) &&
            (organisation === undefined || one.organisation === organisation) &&
            (sought === undefined ||
              [one.name, one.note, one.id].some((text) => text?.toLowerCase().includes(sought))),
        );
      const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      if (after !== undefined && start === 0)
        throw new GatewayError(
          'invalid_value',
          'after is not a cursor of this list. Use "next" from the previous page.',
          { param: 'after' },
        );
      const page = all.slice(start, start + limit);
      const views: OwnerView[] = [];
      for (let index = 0; index < page.length; index += atOnce) {
        const some = page.slice(index, index + atOnce);
        // oxlint-disable-next-line no-await-in-loop -- a few at a time, so that calls get to the database
        for (const view of await Promise.all(some.map((one) => viewOf(one, tools)))) views.push(view);
      }
      return { owners: views, next: start + limit < all.length ? page.at(-1)?.id : undefined };
    },
    findOwner: (request) => viewOf(access.ownerOf(request), tools),
    async createOwner(request) {
      checkManages(request.scope, request.body);
      checkPrices(request.scope, request.body);
      const created = await orInvalid(OwnerMistake, owners.create(request.body));
      await access.note(request, 'owner-create', created.id, { after: created });
      return viewOf(created, tools);
    },
    async updateOwner(request) {
      const before = access.ownerOf(request);
      checkManages(request.scope, before);
      checkPrices(request.scope, request.body);
      const { organisation = before.organisation } = request.body;
      checkManages(request.scope, {
        kind: before.kind,
        ...(organisation === null || organisation === undefined ? {} : { organisation }),
      });
      const changes = Object.entries(request.body).map(([name, value]) => [name, value ?? undefined]);
      const changed = await orInvalid(
        OwnerMistake,
        owners.update(before.id, Object.fromEntries(changes) as OwnerChanges, access.checkOf(request)),
      );
      await access.note(request, 'owner-update', before.id, { before, after: changed });
      return viewOf(changed, tools);
    },
    async deleteOwner(request) {
      const before = access.ownerOf(request);
      checkManages(request.scope, before);
      await orInvalid(OwnerMistake, owners.remove(before.id, access.checkOf(request)));
      await access.note(request, 'owner-delete', before.id, { before });
      return { ok: true };
    },
  };
}

/** Finds owners that an actor may see, checks what may be changed, and notes what was. */
class OwnerAccess {
  readonly #owners: OwnerTools['apiKeys']['owners'];
  readonly #audit: Audit;

  constructor(tools: OwnerTools, audit: Audit) {
    this.#owners = tools.apiKeys.owners;
    this.#audit = audit;
  }

  ownerOf({ id, scope }: { readonly id: string; readonly scope: Scope }): Owner {
    const found = this.#owners.find(id);
    if (found === undefined || !scope.seesOwner(found)) throw noOwner(id);
    return found;
  }

  /** Returns a check of an owner right before it is changed: it may have another organisation since it was looked at. */
  checkOf({ scope, ctx }: { readonly scope: Scope; readonly ctx: RouteContext }) {
    const checkVersion = versionCheck(ctx);
    return (current: Owner): void => {
      if (!scope.seesOwner(current)) throw noOwner(current.id);
      checkManages(scope, current);
      checkVersion(versioned(current));
    };
  }

  note(
    by: Author,
    action: AuditEntry['action'],
    target: string,
    change: { readonly before?: Owner; readonly after?: Owner },
  ): Promise<void> {
    return this.#audit.note(by, { action, target, ...(change as Record<string, JsonObject>) });
  }
}

/** Throws 403 for a price rule that the actor may not set or remove. */
function checkPrices({ setsPrices }: Scope, fields: { readonly pricing?: unknown }): void {
  if (fields.pricing !== undefined && !setsPrices)
    throw new GatewayError(
      'forbidden',
      'Price rules are set by administrators of the whole gateway, because the rule of a team also decides what its calls take of the budget of its organisation.',
      { param: 'pricing' },
    );
}

function noOwner(id: string): GatewayError {
  return new GatewayError('not_found', `There is no owner ${id.slice(0, 100)}.`);
}

/** Throws 403 where the actor sees the owner and may not change it, or may not make such an owner. */
function checkManages(scope: Scope, owner: Parameters<Scope['managesOwner']>[0]): void {
  if (!scope.managesOwner(owner))
    throw new GatewayError(
      'forbidden',
      'Administrators of an organisation can change only its teams, members and service accounts.',
    );
}

/** Returns the fields that make a version: those that administrators edit. */
function versioned({ id: _id, kind: _kind, createdAt: _made, ...edited }: Owner): object {
  return edited;
}

async function viewOf(owner: Owner, { ledger }: OwnerTools): Promise<OwnerView> {
  const { budgets = [], models, addresses, ...rest } = owner;
  const held = budgets.map((budget) => ({ ...budget, owner: { id: owner.id, name: ownerName(owner) } }));
  return {
    ...rest,
    version: versionOf(versioned(owner)),
    ...(models === undefined ? {} : { models: [...models] }),
    ...(addresses === undefined ? {} : { addresses: [...addresses] }),
    budgets: await budgetStates('', held, ledger),
  };
}
