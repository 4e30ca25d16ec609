/** Run-time configuration: reads it, changes it, and has every process follow it. */
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonValue } from '../../model/json.ts';
import type { Channel } from '../../sdk/call.ts';
import type { Format } from '../../sdk/format.ts';
import type {
  EntryChange,
  EntryName,
  HistoryRecord,
  RuntimeAction,
  RuntimeChange,
  RuntimeSnapshot,
} from '../../state/runtime-config/index.ts';
import type { LoadedConfig } from '../config.ts';
import { checkBounds, isSameValue, maxTries, nextSnapshot } from './changes.ts';
import { RuntimeDefinitions } from './definitions.ts';
import { Follower } from './follow.ts';
import type {
  ChangeRequest,
  ChangeResult,
  RunningRuntime,
  RuntimeConfigParts,
  StandingEntry,
} from './contract.ts';
import { fileHas, mergeRuntime, describeEntry } from './merge.ts';
import { keepStored } from './destination.ts';
import { capital, changedMeanwhile, current, nameOf, refused } from './refusals.ts';
import { tryChannel } from './try-channel.ts';
import { datedSecrets, secretsOf } from './secret-values.ts';

/** Time that a request waits at most until its change is applied, in milliseconds. */
const patience = 30_000;

/** The run-time configuration of a gateway. All methods read the database, so that they tell what holds for all gateways on it. */
export class RuntimeConfig {
  readonly #parts: RuntimeConfigParts;
  readonly definitions: RuntimeDefinitions;
  readonly #follower: Follower;
  #running: RunningRuntime = { revision: 0, problems: [] };
  /** The last change of this process, which the next one waits for. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: RuntimeConfigParts) {
    this.#parts = parts;
    this.definitions = new RuntimeDefinitions(parts.file);
    this.#follower = new Follower(parts, () => this.#running);
  }

  /** Export of the config file. */
  get file(): LoadedConfig {
    return this.#parts.file;
  }

  /** False when the config file disables the run-time configuration. */
  get isEnabled(): boolean {
    return this.file.settings.runtimeConfig.enabled;
  }

  /** Says which run-time part the gateway was built of. */
  setRunning(running: RunningRuntime): void {
    this.#running = running;
  }

  /** Follows changes of other gateways until {@link close}. */
  follow(): void {
    if (this.isEnabled) this.#follower.start();
  }

  close(): void {
    this.#follower.stop();
  }

  /** Returns all entries and how they stand. */
  async list(): Promise<{
    readonly revision: number;
    readonly running: number;
    readonly order: readonly string[];
    readonly entries: readonly StandingEntry[];
  }> {
    const snapshot = await this.#parts.store.read();
    const { states } = await mergeRuntime(this.file, snapshot, this.definitions);
    const entries = [...states].map(([entry, state]) => ({ ...state, entry }));
    return { revision: snapshot.revision, running: this.#running.revision, order: snapshot.order, entries };
  }

  history(limit: number, before?: number): Promise<readonly HistoryRecord[]> {
    return this.#parts.store.history(limit, before);
  }

  /** Makes an entry. */
  create(
    named: EntryName & { readonly value: JsonValue; readonly enabled?: boolean },
    by: ChangeRequest,
  ): Promise<ChangeResult> {
    const { kind, name, value, enabled = true } = named;
    return this.#change('create', by, async ({ entries }) => {
      if (entries.some((one) => one.kind === kind && one.name === name))
        throw new GatewayError('conflict', `There is ${describeEntry(named)} already.`, { param: 'name' });
      const found = await fileHas(this.file, this.definitions, named);
      if (found === 'shadowed')
        throw new GatewayError('conflict', `"${name}" is in gateway.config.ts, and is changed there.`, {
          param: 'name',
        });
      if (found === 'inactive')
        throw new GatewayError(
          'invalid_value',
          `The plugin of ${describeEntry(named)} is not running. List it in gateway.config.ts first.`,
          { param: 'name' },
        );
      const now = Date.now();
      const schema = await this.definitions.schemaOf(named, value);
      const kept = keepStored(kind, schema, value, undefined);
      const secrets = secretsOf(schema, kept);
      const secretsAt = datedSecrets(secrets, new Map(), {}, now);
      const after = {
        kind,
        name,
        value: kept,
        secretsAt,
        enabled,
        version: 1,
        createdAt: now,
        updatedAt: now,
      };
      return { changes: [{ kind, name, after }] };
    });
  }

  /** Changes the value of an entry, or switches it. `version` is the one that the change was made for. */
  update(
    named: EntryName,
    version: number,
    change: { readonly value?: JsonValue | undefined; readonly enabled?: boolean | undefined },
    by: ChangeRequest,
  ): Promise<ChangeResult> {
    const action =
      change.value !== undefined || change.enabled === undefined
        ? 'update'
        : change.enabled
          ? 'enable'
          : 'disable';
    return this.#change(action, by, async ({ entries }) => {
      const before = current(entries, named, version);
      const now = Date.now();
      const schema = await this.definitions.schemaOf(named, change.value ?? before.value);
      const old = before.value === undefined ? new Map<string, string>() : secretsOf(schema, before.value);
      const value =
        change.value === undefined
          ? before.value
          : keepStored(named.kind, schema, change.value, before.value);
      if (value === undefined)
        throw new GatewayError(
          'invalid_value',
          `The value of ${describeEntry(named)} cannot be decrypted. Send a new value.`,
        );
      const secretsAt = datedSecrets(secretsOf(schema, value), old, before.secretsAt, now);
      const { sealed: _, ...rest } = before;
      const after = {
        ...rest,
        value,
        secretsAt,
        enabled: change.enabled ?? before.enabled,
        version: before.version + 1,
        updatedAt: now,
      };
      return { changes: [{ ...nameOf(named), before, after }] };
    });
  }

  remove(named: EntryName, version: number, by: ChangeRequest): Promise<ChangeResult> {
    return this.#change('delete', by, async ({ entries }) => ({
      changes: [{ ...nameOf(named), before: current(entries, named, version) }],
    }));
  }

  /** Puts the run-time channels in an order. All of them are named. `revision` is the one that the order was made for. */
  reorder(names: readonly string[], revision: number, by: ChangeRequest): Promise<ChangeResult> {
    return this.#change('reorder', by, async (snapshot) => {
      if (snapshot.revision !== revision) throw changedMeanwhile('The run-time configuration');
      const channels = snapshot.entries.filter(({ kind }) => kind === 'channel').map(({ name }) => name);
      if (names.toSorted().join('\n') !== channels.toSorted().join('\n'))
        throw new GatewayError(
          'invalid_value',
          'The order must have each run-time channel exactly once, and no other.',
          {
            param: 'names',
          },
        );
      return { changes: [], order: { before: snapshot.order, after: names } };
    });
  }

  /** Restores what was before a change. */
  undo(revision: number, by: ChangeRequest): Promise<ChangeResult> {
    return this.#change('undo', by, async (snapshot) => {
      const record = await this.#parts.store.record(revision);
      if (record === undefined)
        throw new GatewayError('not_found', `There is no change ${revision} in the history.`);
      const changes = record.changes.map(({ kind, name, before, after }): EntryChange => {
        const now = snapshot.entries.find((one) => one.kind === kind && one.name === name);
        if (now?.version !== after?.version || now?.createdAt !== after?.createdAt)
          throw changedMeanwhile(capital(describeEntry({ kind, name })));
        const restored = before && {
          ...before,
          version: (now?.version ?? before.version) + 1,
          updatedAt: Date.now(),
        };
        return {
          kind,
          name,
          ...(now === undefined ? {} : { before: now }),
          ...(restored === undefined ? {} : { after: restored }),
        };
      });
      const { order } = record;
      if (order !== undefined && !isSameValue(order.after, snapshot.order))
        throw changedMeanwhile('The order of the channels');
      return {
        changes,
        ...(order === undefined ? {} : { order: { before: order.after, after: order.before } }),
      };
    });
  }

  /** Makes a channel of a value that need not be stored, passes it on, and closes it. Hidden secrets are those of a stored entry of the name. */
  async withChannel<Result>(
    name: string,
    value: JsonValue,
    format: (name: string) => Format | undefined,
    use: (channel: Channel) => Promise<Result>,
  ): Promise<Result> {
    this.#checkEnabled();
    const { entries } = await this.#parts.store.read();
    const stored = entries.find((one) => one.kind === 'channel' && one.name === name)?.value;
    const { file, definitions } = this;
    const { log } = this.#parts;
    return tryChannel({ name, value, stored, file, definitions, log, format }, use);
  }

  #checkEnabled(): void {
    if (!this.isEnabled)
      throw new GatewayError(
        'forbidden',
        'gateway.config.ts does not allow changes at run time: see "runtimeConfig".',
      );
  }

  /** Makes a change: tests it, writes it, and reloads. Changes of one process run sequentially. */
  async #change(
    action: RuntimeAction,
    { actor, wait }: ChangeRequest,
    plan: (snapshot: RuntimeSnapshot) => Promise<Pick<RuntimeChange, 'changes' | 'order'>>,
  ): Promise<ChangeResult> {
    this.#checkEnabled();
    const writing = this.#last.then(() => this.#parts.store.alone(() => this.#write(action, actor, plan)));
    this.#last = writing.catch(() => {});
    const { revision, changes } = await writing;
    const applying = this.#follower.apply(revision);
    if (!wait) return { revision, changes };
    const timer = Promise.withResolvers<undefined>();
    const timeout = setTimeout(() => timer.resolve(undefined), patience);
    const applied = await Promise.race([applying, timer.promise]);
    clearTimeout(timeout);
    return { revision, changes, ...(applied === undefined ? {} : { applied }) };
  }

  async #write(
    action: RuntimeAction,
    actor: string,
    plan: (snapshot: RuntimeSnapshot) => Promise<Pick<RuntimeChange, 'changes' | 'order'>>,
  ): Promise<ChangeResult> {
    for (let tries = 0; tries < maxTries; tries += 1) {
      // oxlint-disable no-await-in-loop -- again only where another gateway has written meanwhile
      const snapshot = await this.#parts.store.read();
      const planned = await plan(snapshot);
      const next = nextSnapshot(snapshot, planned);
      checkBounds(next, planned);
      await this.#try(snapshot, next);
      const revision = await this.#parts.store.write(snapshot.revision, { action, actor, ...planned });
      // oxlint-enable no-await-in-loop
      if (revision !== undefined) return { revision, changes: planned.changes };
    }
    throw new GatewayError('conflict', 'Other gateways are changing the configuration. Retry.');
  }

  /** Builds the configuration that a change would make. Throws 400 with the problems that are new. */
  async #try(before: RuntimeSnapshot, after: RuntimeSnapshot): Promise<void> {
    const problems = await this.#problemsOf(after);
    if (problems.length === 0) return;
    const known = new Set(await this.#problemsOf(before));
    const found = problems.filter((problem) => !known.has(problem));
    if (found.length > 0) throw refused(found);
  }

  async #problemsOf(snapshot: RuntimeSnapshot): Promise<readonly string[]> {
    const { config, problems } = await mergeRuntime(this.file, snapshot, this.definitions);
    return [...problems, ...(await this.#parts.tryConfig(config))];
  }
}
