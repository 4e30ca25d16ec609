/** Resolves aliases of models and reasoning suffixes such as `-high`. */
import { map } from 'rxjs';
import { z } from 'zod';
import {
  caller,
  definePlugin,
  isChat,
  matchesName,
  type Call,
  type Catalog,
  type GatewayEvent,
  type ListedModel,
  type Reasoning,
} from 'sluice';

const options = z.strictObject({
  /** Aliases: a name that callers may request, and the model that is served for it. The model may have a suffix. */
  aliases: z.record(z.string().min(1), z.string().min(1)).default({}),
  /** Reads suffixes. */
  suffixes: z.boolean().default(true),
  /** Reads also `-minimal`, `-xhigh`, `-max`, `-none` and `-nothinking`: after every model, or after models that match a pattern. */
  extended: z.union([z.boolean(), z.array(z.string().min(1))]).default(false),
  /** Patterns of names from which no suffix is read. Not needed for names that a channel lists, or that the catalogue has. */
  keep: z.array(z.string().min(1)).default([]),
});

/** Reasoning that a suffix requests. */
interface RequestedReasoning {
  readonly effort?: NonNullable<Reasoning['effort']>;
  readonly mode?: 'on' | 'off';
}

interface Resolved {
  readonly model: string;
  readonly requested?: RequestedReasoning;
}

/**
 * Lets callers request a model by an alias, or with a suffix that sets its reasoning: `x-high`, `x-thinking`. Reasoning settings in the
 * request take precedence over the suffix. The response has the requested name.
 *
 * A suffix is read if no channel lists the whole name and some channel serves the name without it, also if one pattern (`claude-*`) matches
 * both, because providers do not know `claude-x-high`. Names of the catalogue that end like a suffix are kept. In operations without
 * reasoning, such as embeddings and images, the suffix is part of the name.
 */
export default definePlugin({
  name: 'model-alias',
  stage: 'admit',
  before: ['model-access', 'stored-responses', 'provider-objects', 'quota', 'realtime-sessions'],
  options,
  editable: ['suffixes', 'extended', 'keep'],
  editableTables: { alias: 'aliases' },
  setup(chosen, { catalog, log, onModelsChanged }) {
    const aliases = new Map(Object.entries(chosen.aliases));
    const { resolve, forget } = remembered(resolver(aliases, chosen, catalog));
    onModelsChanged(forget);
    for (const alias of aliases.keys()) {
      const { model } = resolve(alias);
      if (!catalog.serves(model)) log.warn({ alias, model }, 'no channel serves the model of this alias');
    }
    return function modelAlias(call, next) {
      if (call.operation === 'list-models') {
        if (aliases.size === 0) return next(call);
        return next(call).then((events) =>
          events.pipe(map(withAliases(call, [...aliases.keys()], resolve, catalog))),
        );
      }
      if (call.operation === 'tool') return next(call);
      const { model, requested } = resolve(call.model);
      if (model === call.model) return next(call);
      const { request } = call;
      if (!isChat(request)) return next(aliases.has(call.model) ? call.with({ model }) : call);
      const reasoning =
        requested === undefined ? undefined : withRequested(requested, request.settings.reasoning);
      return next(call.with(reasoning === undefined ? { model } : { model, settings: { reasoning } }));
    };
  },
});

const suffixed = /^(.+)-(low|medium|high|thinking|minimal|xhigh|max|none|nothinking)$/;

const reasoningBySuffix: ReadonlyMap<string, RequestedReasoning & { readonly extended?: true }> = new Map([
  ['low', { effort: 'low' }],
  ['medium', { effort: 'medium' }],
  ['high', { effort: 'high' }],
  ['thinking', { mode: 'on' }],
  ['minimal', { effort: 'minimal', extended: true }],
  ['xhigh', { effort: 'xhigh', extended: true }],
  ['max', { effort: 'max', extended: true }],
  ['none', { effort: 'none', extended: true }],
  ['nothinking', { mode: 'off', extended: true }],
]);

function resolver(
  aliases: ReadonlyMap<string, string>,
  chosen: z.output<typeof options>,
  catalog: Catalog,
): (name: string) => Resolved {
  const reads = (base: string, isExtended: boolean): boolean =>
    !isExtended ||
    (typeof chosen.extended === 'boolean' ? chosen.extended : matchesName(chosen.extended, base));

  // `depth` ends a circle of aliases.
  const resolve = (name: string, depth: number): Resolved => {
    const target = depth < aliases.size ? aliases.get(name) : undefined;
    if (target !== undefined) return resolve(target, depth + 1);
    if (!chosen.suffixes || catalog.isKnown(name)) return { model: name };
    const [, base = '', word = ''] = suffixed.exec(name) ?? [];
    const { extended, ...reasoning } = reasoningBySuffix.get(word) ?? {};
    if (base === '' || !reads(base, extended === true) || isKept(name, chosen.keep, catalog))
      return { model: name };
    if (aliases.has(base)) {
      const { model, requested: inner } = resolve(base, depth);
      return { model, requested: { ...inner, ...reasoning } };
    }
    return catalog.serves(base) ? { model: base, requested: reasoning } : { model: name };
  };
  return (name) => resolve(name, 0);
}

/** Returns true for a name that ends like a suffix and is that of a model. */
function isKept(name: string, keep: readonly string[], catalog: Catalog): boolean {
  return matchesName(keep, name) || catalog.isInModelList(name);
}

/** Caches resolved names, because names repeat. The size is limited because clients can send any name. */
function remembered(resolve: (name: string) => Resolved): {
  readonly resolve: (name: string) => Resolved;
  readonly forget: () => void;
} {
  const known = new Map<string, Resolved>();
  const find = (name: string): Resolved => {
    let resolved = known.get(name);
    if (resolved === undefined) {
      resolved = resolve(name);
      if (known.size < 1000 && name.length < 200) known.set(name, resolved);
    }
    return resolved;
  };
  return { resolve: find, forget: () => known.clear() };
}

/** Returns the client's reasoning settings with those of the suffix added; undefined if the client has set all of them. */
function withRequested({ effort, mode }: RequestedReasoning, own: Reasoning = {}): Reasoning | undefined {
  const isOff = own.mode === 'off' || own.effort === 'none' || own.budget === 0;
  const saysHowMuch = isOff || own.effort !== undefined || own.budget !== undefined;
  const added = {
    ...(effort === undefined || saysHowMuch ? {} : { effort }),
    ...(mode === 'off' && own.mode === undefined && !saysHowMuch ? { mode } : {}),
    ...(mode === 'on' && own.mode === undefined && !isOff ? { mode } : {}),
    ...(mode === 'on' && own.show === undefined && own.display === undefined && !isOff ? { show: true } : {}),
  };
  return Object.keys(added).length === 0 ? undefined : { ...own, ...added };
}

/** Adds the aliases that the key may use to model lists. */
function withAliases(
  call: Call,
  aliases: readonly string[],
  resolve: (name: string) => Resolved,
  catalog: Catalog,
): (event: GatewayEvent) => GatewayEvent {
  return (event) => {
    if (event.type !== 'models') return event;
    const allowed = call.get(caller)?.models;
    const known = new Map(catalog.list().map((model) => [model.id, model]));
    const shown = new Map(event.models.map((model) => [model.id, model]));
    for (const alias of aliases) {
      const { model } = resolve(alias);
      if (!catalog.serves(model) || !mayUse(allowed, alias, model)) continue;
      const like: ListedModel = known.get(model) ?? { id: model, created: 0, ownedBy: 'system' };
      shown.set(alias, { ...like, id: alias });
    }
    return { ...event, models: [...shown.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
  };
}

/** Returns true if a key may request a model by one of these names. */
function mayUse(allowed: readonly string[] | undefined, ...names: readonly string[]): boolean {
  return allowed === undefined || names.some((name) => matchesName(allowed, name));
}
