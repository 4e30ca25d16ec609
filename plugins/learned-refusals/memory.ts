/**
 * Remembers which members providers refuse, by channel and model, in memory and in the database. Limits the second attempts by which that is found
 * out.
 */
import type { PluginTools, RefusedMember } from 'sluice';

/** A member that a model of a channel was found to refuse. */
export interface Learned {
  readonly channel: string;
  /** The provider's name of the model. */
  readonly model: string;
  readonly member: RefusedMember;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
}

/** Options of a {@link Memory}. */
export interface MemoryOptions {
  /** Milliseconds that a refused member is remembered. */
  readonly ttl: number;
  /** Maximum number of second attempts for a model of a channel within an hour, in all processes. */
  readonly perHour: number;
  /** Interval in milliseconds at which the knowledge of other processes is read. */
  readonly follow: number;
}

/** Name of the collection in the database. */
const namespace = 'learned-refusals';
/** Collection of the times of second attempts, by channel and model. */
const attemptsNamespace = 'refusal-attempts';
/** Maximum number of models of channels that are remembered. */
const mostModels = 1000;
/** Maximum number of members that are remembered of one model. */
const mostMembers = 8;
/** Maximum length in characters of the name of a remembered model. */
const longestModel = 256;
const hour = 3_600_000;

const nothing: readonly Learned[] = [];

/** Refused members by channel and model: in memory for calls, and in the database for other processes and for the next start. */
export class Memory {
  readonly #tools: Pick<PluginTools, 'stores' | 'log'>;
  readonly #options: MemoryOptions;
  readonly #store;
  #known: ReadonlyMap<string, readonly Learned[]> = new Map();
  /** Times of second attempts of the last hour. */
  readonly #attempts = new Map<string, readonly number[]>();
  /** Members that a second attempt was refused for, by the models of those attempts. */
  readonly #suspected = new Map<string, readonly RefusedMember[]>();
  #revision: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #isStopped = false;

  constructor(tools: Pick<PluginTools, 'stores' | 'log'>, options: MemoryOptions) {
    this.#tools = tools;
    this.#options = options;
    this.#store = tools.stores.namespace<Learned>(namespace);
  }

  /** Reads the database, now and whenever it has changed, until `stop`. No call waits for it. */
  follow(): void {
    void this.refresh();
    this.#timer = setInterval(() => void this.refresh(), this.#options.follow).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#isStopped = true;
  }

  /** Returns what is known of a model now. */
  of(channel: string, model: string): readonly Learned[] {
    if (this.#known.size === 0) return nothing;
    const now = Date.now();
    return this.#known.get(keyOf(channel, model))?.filter(({ until }) => until > now) ?? nothing;
  }

  /** Returns what is known now of all models. */
  all(): readonly Learned[] {
    const now = Date.now();
    return [...this.#known.values()].flat().filter(({ until }) => until > now);
  }

  /** Returns true while a model may have another second attempt, and another member of it can be remembered. */
  mayLearn(channel: string, model: string): boolean {
    if (model.length > longestModel || this.of(channel, model).length >= mostMembers) return false;
    const key = keyOf(channel, model);
    if (!this.#known.has(key) && this.#known.size >= mostModels) return false;
    this.#forgetAttempts();
    const attempts = this.#attempts.get(key);
    if (attempts === undefined && this.#attempts.size >= mostModels) return false;
    return (attempts?.length ?? 0) < this.#options.perHour;
  }

  /**
   * Takes one of the second attempts that all processes on the database may make within an hour. Resolves with a function that returns it, or
   * with undefined where none is left. While the database fails, each process has the full number for itself.
   */
  async lock(channel: string, model: string): Promise<(() => void) | undefined> {
    const { stores } = this.#tools;
    const key = JSON.stringify([channel, model]);
    const now = Date.now();
    const recent = (times: unknown): readonly number[] =>
      Array.isArray(times)
        ? times.filter((time: unknown) => typeof time === 'number' && time > now - hour)
        : [];
    let isSpent = false;
    const take = (
      times: unknown,
    ): { readonly value: readonly number[]; readonly ttl: number } | undefined => {
      const left = recent(times);
      isSpent = left.length >= this.#options.perHour;
      return isSpent ? undefined : { value: [...left, now], ttl: hour };
    };
    const giveBack = (): void => {
      stores
        .change(attemptsNamespace, key, (times: unknown) => {
          const [first, ...others] = recent(times).filter((time) => time === now);
          if (first === undefined) return undefined;
          return { value: [...recent(times).filter((time) => time !== now), ...others], ttl: hour };
        })
        .catch((error: unknown) => this.#failed(error));
    };
    try {
      if ((await stores.change(attemptsNamespace, key, take)) !== undefined) return giveBack;
      if (isSpent) return undefined;
      if (await stores.add(attemptsNamespace, key, [now], hour)) return giveBack;
      // Another process was first.
      return (await stores.change(attemptsNamespace, key, take)) === undefined ? undefined : giveBack;
    } catch (error) {
      this.#failed(error);
      return () => {};
    }
  }

  /** Counts a second attempt of this process, however it ends. */
  count(channel: string, model: string): void {
    const key = keyOf(channel, model);
    this.#attempts.set(key, [...(this.#attempts.get(key) ?? []), Date.now()]);
  }

  /**
   * Keeps members for which a second attempt was refused, for this hour. Providers name one member at a time: the second attempt of the next call
   * goes without them too. Nothing is remembered before a provider accepts that.
   */
  suspect(channel: string, model: string, members: readonly RefusedMember[]): void {
    const before = this.suspected(channel, model);
    if (before.length === 0 && this.#suspected.size >= mostModels) return;
    const added = members.filter(({ path }) => before.every((one) => one.path !== path));
    this.#suspected.set(keyOf(channel, model), [...before, ...added].slice(0, mostMembers));
  }

  suspected(channel: string, model: string): readonly RefusedMember[] {
    return this.#suspected.get(keyOf(channel, model)) ?? [];
  }

  /** Remembers a member. Returns false for one that is known already. */
  learn(channel: string, model: string, member: RefusedMember): boolean {
    const before = this.of(channel, model);
    if (before.length >= mostMembers || before.some((one) => one.member.path === member.path)) return false;
    const since = Date.now();
    const learned = { channel, model, member, since, until: since + this.#options.ttl };
    this.#suspected.delete(keyOf(channel, model));
    this.#known = new Map(this.#known).set(keyOf(channel, model), [...before, learned]);
    this.#store
      .set(JSON.stringify([channel, model, member.path]), learned, this.#options.ttl)
      .catch((error: unknown) => this.#failed(error));
    return true;
  }

  /** Reads what is in the database, where that has changed. A failure is logged. */
  async refresh(): Promise<void> {
    try {
      const revision = await this.#tools.stores.revision(namespace);
      if (revision === this.#revision) return;
      const stored = await storedRefusals(this.#tools);
      this.#known = grouped([...stored, ...[...this.#known.values()].flat()]);
      this.#revision = revision;
      this.#hasFailed = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Logs a failure of the database, once until it works again. What is in memory stays in force. */
  #failed(error: unknown): void {
    // The database may be closed while it is read.
    if (this.#isStopped) return;
    if (!this.#hasFailed)
      this.#tools.log.error(
        { error },
        'the database failed: other processes do not share what providers refuse',
      );
    this.#hasFailed = true;
  }

  #forgetAttempts(): void {
    const since = Date.now() - hour;
    for (const [key, times] of this.#attempts) {
      const left = times.filter((time) => time > since);
      if (left.length > 0) this.#attempts.set(key, left);
      else {
        this.#attempts.delete(key);
        this.#suspected.delete(key);
      }
    }
  }
}

type Entries = AsyncIterable<readonly [key: string, value: Learned | undefined]>;

/** Returns what is remembered in the database, of all processes that share it. */
export async function storedRefusals({ stores }: Pick<PluginTools, 'stores'>): Promise<readonly Learned[]> {
  const found: Learned[] = [];
  const now = Date.now();
  const entries = stores.namespace<Learned>(namespace).iterator?.(undefined) as Entries | undefined;
  for await (const [, entry] of entries ?? []) {
    // A damaged entry reads as an object without members.
    if (entry?.member?.path !== undefined && entry.until > now) found.push(entry);
    if (found.length >= mostModels * mostMembers) break;
  }
  return found;
}

/** Groups members by model, each once, without those that have expired or exceed a limit. */
function grouped(all: readonly Learned[]): ReadonlyMap<string, readonly Learned[]> {
  const now = Date.now();
  const groups = new Map<string, Learned[]>();
  for (const one of all) {
    const key = keyOf(one.channel, one.model);
    const group = groups.get(key) ?? [];
    const isKnown = group.some(({ member }) => member.path === one.member.path);
    if (one.until <= now || isKnown || group.length >= mostMembers) continue;
    if (group.length === 0 && groups.size >= mostModels) continue;
    groups.set(key, [...group, one]);
  }
  return groups;
}

function keyOf(channel: string, model: string): string {
  return `${channel}\n${model}`;
}
