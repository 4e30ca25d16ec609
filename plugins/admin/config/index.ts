/** Admin endpoints for run-time configuration. */
import { GatewayError, type JsonObject, type JsonValue } from 'sluice';
import { changedPaths, entryKinds, type InternalTools } from 'sluice/internal';
import type { ChangeResult, EntryName, RuntimeConfig } from '../core-types.ts';
import type { Audit, Author } from '../audit.ts';
import { testChannel } from '../channel-test.ts';
import type { AuditEntry, ConfigHistory } from '../schemas/index.ts';
import type { Handlers } from '../serve.ts';
import { entryView, pageOf } from './views.ts';

/** Names of the routes. */
type ConfigRoute =
  | 'listConfig'
  | 'findConfig'
  | 'createConfig'
  | 'updateConfig'
  | 'enableConfig'
  | 'disableConfig'
  | 'deleteConfig'
  | 'orderConfig'
  | 'testConfig'
  | 'listChannelTypes'
  | 'findChannelType'
  | 'listPluginForms'
  | 'listConfigHistory'
  | 'undoConfig';

/** Returns the routes about run-time configuration. */
export function configHandlers(
  { runtimeConfig, calls, format }: Pick<InternalTools, 'runtimeConfig' | 'calls' | 'format'>,
  audit: Audit,
): Handlers<ConfigRoute> {
  const entries = new ConfigChanges(runtimeConfig, audit);
  return {
    listConfig: ({ query }) => pageOf(entries.config(), query),
    findConfig: ({ id }) => entries.findEntry(id),
    async createConfig(request) {
      const result = await entries
        .config()
        .create({ ...request.body, value: request.body.value as JsonValue }, by(request, request.query.wait));
      return entries.changed(request, 'config-create', result);
    },
    async updateConfig(request) {
      const { version, value, enabled } = request.body;
      const change = { value: value as JsonValue | undefined, enabled };
      const result = await entries
        .config()
        .update(nameOf(request.id), version, change, by(request, request.query.wait));
      return entries.changed(request, 'config-update', result);
    },
    enableConfig: (request) => entries.setEnabled(request, request.body.version, true),
    disableConfig: (request) => entries.setEnabled(request, request.body.version, false),
    async deleteConfig(request) {
      const { version, wait } = request.query;
      return entries.changed(
        request,
        'config-delete',
        await entries.config().remove(nameOf(request.id), version, by(request, wait)),
      );
    },
    async orderConfig(request) {
      const { names, revision } = request.body;
      return entries.changed(
        request,
        'config-order',
        await entries.config().reorder(names, revision, by(request, request.query.wait)),
      );
    },
    async testConfig(request) {
      const { name, value, model } = request.body;
      const result = await entries
        .config()
        .withChannel(name, value as JsonValue, format, (channel) => testChannel(calls, channel, model));
      await audit.note(request, {
        action: 'config-test',
        target: `channel:${name}`,
        after: { model: result.model, ok: result.ok },
      });
      return result;
    },
    async listChannelTypes() {
      return { types: [...(await entries.config().definitions.channelTypes())] };
    },
    async findChannelType({ id }) {
      const form = await entries.config().definitions.channelForm(id);
      if (form === undefined)
        throw new GatewayError('not_found', `There is no channel kind ${id.slice(0, 100)}.`);
      return { name: id, schema: form.schema, own: [...form.own] };
    },
    listPluginForms: () => formsOf(entries.config().definitions),
    listConfigHistory: ({ query: { limit, before } }) => historyOf(entries.config(), limit, before),
    async undoConfig(request) {
      const revision = Number(request.id);
      if (!Number.isInteger(revision) || revision < 1)
        throw new GatewayError('not_found', `There is no change ${request.id.slice(0, 100)} in the history.`);
      return entries.changed(
        request,
        'config-undo',
        await entries.config().undo(revision, by(request, request.query.wait)),
      );
    },
  };
}

/** Reads and changes entries, and notes changes in the audit log. */
class ConfigChanges {
  readonly #runtimeConfig: RuntimeConfig | undefined;
  readonly #audit: Audit;

  constructor(runtimeConfig: RuntimeConfig | undefined, audit: Audit) {
    this.#runtimeConfig = runtimeConfig;
    this.#audit = audit;
  }

  config(): RuntimeConfig {
    if (this.#runtimeConfig === undefined)
      throw new Error('A gateway that is only checked does not serve calls.');
    return this.#runtimeConfig;
  }

  /** Writes a change to the audit log and returns the entry as it is now. */
  async changed(author: Author, action: AuditEntry['action'], result: ChangeResult) {
    const { definitions } = this.config();
    const { revision, changes, applied } = result;
    for (const { kind, name, before, after } of changes) {
      const named = { kind, name };
      const shown = async (entry: typeof before): Promise<JsonObject | undefined> =>
        entry && {
          version: entry.version,
          enabled: entry.enabled,
          ...(entry.value === undefined
            ? {}
            : { value: await definitions.viewOf(named, entry.value, entry.secretsAt) }),
        };
      // oxlint-disable-next-line no-await-in-loop -- in the order of the changes
      const [was, is] = [await shown(before), await shown(after)];
      const paths = [...changedPaths(before?.value, after?.value)];
      // oxlint-disable-next-line no-await-in-loop -- in the order of the changes
      await this.#audit.note(author, {
        action,
        target: idOf(named),
        ...(was === undefined ? {} : { before: shortened(was) }),
        ...(is === undefined ? {} : { after: { ...shortened(is), changed: paths } }),
      });
    }
    if (changes.length === 0) await this.#audit.note(author, { action, target: `revision ${revision}` });
    const [only] = changes;
    const isOne = changes.length === 1 && only?.after !== undefined;
    return {
      ...(isOne ? { entry: await this.findEntry(idOf(only)) } : {}),
      revision,
      applied: applied && { ok: applied.ok, problems: [...applied.problems] },
    };
  }

  async findEntry(id: string) {
    const { definitions } = this.config();
    const named = nameOf(id);
    const { entries } = await this.config().list();
    const found = entries.find(({ entry }) => entry.kind === named.kind && entry.name === named.name);
    if (found !== undefined) return entryView(definitions, found);
    const page = await pageOf(this.config(), { kind: named.kind, origin: 'file', limit: Infinity });
    const ofFile = page.entries.find((entry) => entry.name === named.name);
    if (ofFile === undefined) throw new GatewayError('not_found', `There is no entry ${id.slice(0, 300)}.`);
    return ofFile;
  }

  async setEnabled(request: Author & { readonly id: string }, version: number, enabled: boolean) {
    const result = await this.config().update(nameOf(request.id), version, { enabled }, by(request));
    return this.changed(request, enabled ? 'config-enable' : 'config-disable', result);
  }
}

/** Returns a page of the history, newest first. */
async function historyOf(
  config: RuntimeConfig,
  limit: number,
  before: number | undefined,
): Promise<ConfigHistory> {
  const records = await config.history(limit, before);
  const { definitions } = config;
  const shown = await Promise.all(
    records.map(async ({ changes, order, ...record }): Promise<ConfigHistory['records'][number]> => ({
      ...record,
      changes: await Promise.all(
        changes.map(async (change) => {
          const { before: was, after: is } = change;
          const view = (entry: typeof was) =>
            entry?.value === undefined ? undefined : definitions.viewOf(change, entry.value, entry.secretsAt);
          return {
            id: idOf(change),
            before: await view(was),
            after: await view(is),
            changed: [...changedPaths(was?.value, is?.value)],
          };
        }),
      ),
      order: order && { before: [...order.before], after: [...order.after] },
    })),
  );
  const last = records.at(-1);
  return {
    records: shown,
    ...(records.length === limit && last !== undefined ? { next: last.revision } : {}),
  };
}

async function formsOf(
  definitions: RuntimeConfig['definitions'],
): Promise<Awaited<ReturnType<Handlers<'listPluginForms'>['listPluginForms']>>> {
  const tables = await Promise.all(
    (['alias', 'access'] as const).map(async (kind) =>
      (await definitions.tableOf(kind)) === undefined ? [] : [kind],
    ),
  );
  const forms = await definitions.pluginForms();
  const ofPlugins = forms.length === 0 ? [] : (['plugin'] as const);
  return {
    forms,
    price: definitions.priceForm(),
    kinds: ['channel', 'price', ...tables.flat(), ...ofPlugins],
  };
}

/** Options of a change: its author, and whether the response waits until the change is applied. */
function by({ actor }: Author, wait: 'true' | 'false' = 'true') {
  return {
    actor: `${actor.kind === 'password' ? '' : `${actor.kind} `}${actor.name}`.slice(0, 200),
    wait: wait === 'true',
  };
}

/** Largest value in the audit log, in characters: its history has it whole. */
const longestAudited = 8_000;

function shortened(view: JsonObject): JsonObject {
  if (JSON.stringify(view).length <= longestAudited) return view;
  const { value: _, ...rest } = view;
  return rest;
}

function idOf({ kind, name }: EntryName): string {
  return `${kind}:${name}`;
}

/** Reads `channel:eu`. Throws 404 for anything else. */
function nameOf(id: string): EntryName {
  const colon = id.indexOf(':');
  const kind = entryKinds.find((one) => one === id.slice(0, Math.max(0, colon)));
  const name = id.slice(colon + 1);
  if (kind === undefined || name === '')
    throw new GatewayError('not_found', `There is no entry ${id.slice(0, 300)}.`);
  return { kind, name };
}
