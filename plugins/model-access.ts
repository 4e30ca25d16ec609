import { map } from 'rxjs';
import { z } from 'zod';
import {
  caller,
  definePlugin,
  GatewayError,
  checkMessages,
  foldName,
  intersectPatterns,
  matchesModel,
  type ApiKey,
  type Catalog,
  type GatewayEvent,
  type Call,
  type Next,
} from 'sluice';
import { boundBy, checkMembers, checkPaidMembers } from './_paid-members.ts';

/**
 * Restricts keys to models. A key with a list of models gets 403 for every other model, and model lists show only its own. The requested
 * name and the name after `model-alias` both count, so that a key for `x` may request `x-high`.
 *
 * Some providers select a model themselves if a request names several (`routingFields` of their channels). A key with a list of models, or
 * with a budget in dollars, gets 403 for such a request. Tools and fields by which a provider runs a further model are checked too, also in
 * messages of sessions: that model must be allowed like the model of the call.
 */
export default definePlugin({
  name: 'model-access',
  stage: 'admit',
  options: z.strictObject({
    /**
     * Allowed models, as names and patterns: under `*` for all calls, under the id of an organisation, team, member, service account or key
     * for its calls. A call must match all lists that apply to it, and those of its key and of the key's owners.
     */
    models: z.record(z.string().min(1), z.array(z.string().min(1)).min(1).max(1_000)).default({}),
  }),
  editableTables: { access: 'models' },
  after: ['model-alias'],
  before: ['stored-responses', 'provider-objects', 'quota', 'realtime-sessions'],
  setup({ models }, { catalog }) {
    const narrowed = narrowing(models);
    return function modelAccess(call: Call, next) {
      // The operator chose the model that a plugin asks on behalf of a call.
      if (call.parent !== undefined) return next(call);
      const given = call.get(caller);
      const key = given && narrowed(given);
      // Later plugins check further models of the request against the key.
      if (key !== undefined && key !== given) call.set(caller, key);
      const bound = key && boundBy(key);
      if (key !== undefined && bound !== undefined && !runsNothing.has(call.operation)) {
        checkRouting(call, bound, catalog);
        checkPaidMembers(key, call.bodyOutline);
        checkBodyModel(call, key);
      }
      const allowed = key?.models;
      // Responses of a plugin's own endpoint involve no model.
      if (allowed === undefined || call.operation === 'state') return checked(call, next, key);
      if (call.operation === 'list-models')
        return next(call).then((events) => events.pipe(map(only(allowed))));
      if (!matchesModel(allowed, call.model) && !matchesModel(allowed, call.askedModel)) {
        throw new GatewayError(
          'model_not_allowed',
          `This API key has no access to the model ${call.askedModel}.`,
          {
            param: 'model',
          },
        );
      }
      return checked(call, next, key);
    };
  },
});

/** Returns a function that restricts the models of a key by the lists that apply to it. It returns the same object for the same key. */
function narrowing(lists: Readonly<Record<string, readonly string[]>>): (key: ApiKey) => ApiKey {
  if (Object.keys(lists).length === 0) return (key) => key;
  const table = new Map(Object.entries(lists));
  const known = new WeakMap<ApiKey, ApiKey>();
  return (key) => {
    let narrowed = known.get(key);
    if (narrowed === undefined) {
      const ids = ['*', key.id, ...(key.owners ?? []).map(({ id }) => id)];
      const [first, ...others] = [key.models, ...ids.map((id) => table.get(id))].filter(
        (list) => list !== undefined,
      );
      const models = first && others.reduce(intersectPatterns, first);
      narrowed = models === undefined || models === key.models ? key : { ...key, models };
      known.set(key, narrowed);
      known.set(narrowed, narrowed);
    }
    return narrowed;
  };
}

/** Operations that run no model and no tool of the request. */
const runsNothing: ReadonlySet<Call['operation']> = new Set<Call['operation']>([
  'count-tokens',
  'list-models',
  'state',
]);

/** Throws 403 for a body that names another model than the path does, which the provider may read as the model of the call. */
function checkBodyModel(call: Call, key: ApiKey): void {
  const { model } = call.bodyOutline;
  if (typeof model !== 'string') return;
  const named = model.replace(/^models\//, '');
  if (named !== call.askedModel && named !== call.model)
    checkMembers(key, [{ path: 'model', kind: 'model', models: [named] }]);
}

/** Matches fields by which a session may run a further model or service, and field names with escapes. */
const sign = /tool|model|tier|mcp|\\u00/i;

/** Passes a call on. In a session, checks each message that has such fields. */
function checked(call: Call, next: Next, key: ApiKey | undefined): ReturnType<Next> {
  if (call.operation !== 'realtime' || key === undefined || boundBy(key) === undefined) return next(call);
  return checkMessages(call, next, {
    concerns: (data) => sign.test(data.toString('latin1')),
    check: (event) => checkPaidMembers(key, event, { runs: 'elsewhere' }),
    failure: 'The tools that this message names cannot be checked now.',
  });
}

/** Throws 403 for a request with fields by which a provider may select another model than the checked one. */
function checkRouting(call: Call, bound: string, catalog: Catalog): void {
  for (const { channel } of catalog.candidates(call.model)) {
    if (channel.routingFields === undefined) continue;
    for (const name in call.body)
      if (channel.routingFields.has(foldName(name)))
        throw new GatewayError(
          'model_not_allowed',
          `This API key ${bound}, so that "${name}", by which the provider chooses for itself, cannot be sent with it.`,
          { param: name },
        );
  }
}

/** Removes models that are not allowed from a model list. */
function only(allowed: readonly string[]): (event: GatewayEvent) => GatewayEvent {
  return (event) =>
    event.type === 'models'
      ? { ...event, models: event.models.filter(({ id }) => matchesModel(allowed, id)) }
      : event;
}
