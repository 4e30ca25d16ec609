import { compileLua, luaText, type LuaValue } from './lua.ts';

interface Entry {
  /** A sorted set or a hash, or a list. */
  readonly value: Map<string, number> | string[];
  expires: number;
  /** No score of a sorted set is below it: what removes low scores need not look at each of them. */
  least: number;
}

/** The commands that scripts of rates use, in memory. Sorted sets and hashes are maps to numbers. */
export class MemoryRedis {
  #entries = new Map<string, Entry>();
  /** Microseconds since 1970. */
  readonly #clock: () => number;
  /** The time at which the present command or script began, in microseconds and in milliseconds. */
  #microseconds = 0;
  #now = 0;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Runs a script as one step. */
  run(text: string, keys: readonly string[], values: readonly string[]): readonly unknown[] {
    this.#begin();
    const reply = compileLua(text)(keys, values, this.#call);
    if (!Array.isArray(reply)) return [reply];
    return reply.slice(1).map((value) => (typeof value === 'number' ? Math.trunc(value) : value));
  }

  /** Takes the oldest message out of a list. */
  pop(list: string): string | undefined {
    this.#begin();
    const value = this.#find(list)?.value;
    return Array.isArray(value) ? value.shift() : undefined;
  }

  /** All that it has, for a copy that may be behind. */
  snapshot(): ReadonlyMap<string, Entry> {
    return new Map(
      [...this.#entries].map(([key, { value, ...entry }]) => [
        key,
        { value: Array.isArray(value) ? [...value] : new Map(value), ...entry },
      ]),
    );
  }

  /** Has only what the copy has. */
  restore(copy: ReadonlyMap<string, Entry>): void {
    this.#entries = new Map(copy);
  }

  /** Number of members of a sorted set whose scores are above one, and whose names begin so. */
  count(key: string, above: number, prefix: string): number {
    this.#begin();
    const value = this.#find(key)?.value;
    if (!(value instanceof Map)) return 0;
    let count = 0;
    for (const [member, score] of value) if (score > above && member.startsWith(prefix)) count += 1;
    return count;
  }

  /** Has nothing any more. */
  forget(): void {
    this.#entries.clear();
  }

  #begin(): void {
    this.#microseconds = this.#clock();
    this.#now = Math.floor(this.#microseconds / 1000);
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expires > this.#now) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #make(key: string, value: Entry['value']): Entry {
    const entry: Entry = { value, expires: Infinity, least: Infinity };
    this.#entries.set(key, entry);
    return entry;
  }

  #map(key: string): Map<string, number> {
    const value = this.#find(key)?.value;
    return value instanceof Map ? value : (this.#make(key, new Map()).value as Map<string, number>);
  }

  #list(key: string): string[] {
    const value = this.#find(key)?.value;
    return Array.isArray(value) ? value : (this.#make(key, []).value as string[]);
  }

  /** Runs a command. A field, so that no script needs a function of its own. */
  readonly #call = (
    command: LuaValue,
    name?: LuaValue,
    first?: LuaValue,
    second?: LuaValue,
    ...others: readonly LuaValue[]
  ): LuaValue => {
    const key = textOf(name);
    switch (command) {
      case 'TIME':
        return [
          undefined,
          String(Math.floor(this.#microseconds / 1e6)),
          String(Math.floor(this.#microseconds % 1e6)),
        ];
      case 'PEXPIRE': {
        const entry = this.#find(key);
        const milliseconds = integerOf(first, 0);
        if (entry !== undefined) entry.expires = this.#now + milliseconds;
        return entry === undefined ? 0 : 1;
      }
      case 'HGET':
      case 'ZSCORE': {
        const value = (this.#find(key)?.value as Map<string, number> | undefined)?.get(textOf(first));
        return value === undefined ? false : String(value);
      }
      case 'HGETALL': {
        const fields: LuaValue[] = [undefined];
        for (const [field, value] of this.#map(key)) fields.push(field, String(value));
        return fields;
      }
      case 'HINCRBY': {
        const map = this.#map(key);
        const field = textOf(first);
        const value = (map.get(field) ?? 0) + integerOf(second, Number.NEGATIVE_INFINITY);
        map.set(field, value);
        return value;
      }
      case 'HDEL':
      case 'ZREM': {
        const map = this.#map(key);
        for (const field of [first, second, ...others]) if (field !== undefined) map.delete(textOf(field));
        return 0;
      }
      case 'ZADD': {
        const map = this.#map(key);
        const score = Number(first);
        map.set(textOf(second), score);
        const entry = this.#find(key);
        if (entry !== undefined && score < entry.least) entry.least = score;
        return 1;
      }
      case 'ZCARD':
        return this.#map(key).size;
      case 'ZREMRANGEBYSCORE':
        this.#removeUpTo(key, Number(second));
        return 0;
      case 'ZRANGEBYSCORE':
        return [
          undefined,
          ...[...this.#map(key)]
            .filter(([, score]) => score >= Number(first))
            .toSorted(([a, from], [b, to]) => from - to || (a < b ? -1 : 1))
            .map(([member]) => member),
        ];
      case 'RPUSH':
        return this.#list(key).push(textOf(first));
      case 'LTRIM':
        return this.#list(key).splice(0, Math.max(0, this.#list(key).length + Number(first))).length;
      default:
        throw new Error(`${textOf(command)} is not known here.`);
    }
  };

  #removeUpTo(key: string, most: number): void {
    const entry = this.#find(key);
    if (entry === undefined || !(entry.value instanceof Map) || most < entry.least) return;
    entry.least = Infinity;
    for (const [member, score] of entry.value)
      if (score <= most) entry.value.delete(member);
      else entry.least = Math.min(entry.least, score);
  }
}

/** A word of a command as the store receives it. */
function textOf(value: LuaValue): string {
  return typeof value === 'string' ? value : luaText(value);
}

/** Returns a whole number from `least` on. Throws for other words, as the store does. */
function integerOf(word: LuaValue, least: number): number {
  const value = typeof word === 'string' && !/^-?\d+$/.test(word) ? Number.NaN : Number(word);
  if (!Number.isSafeInteger(value) || value < least) throw new Error(`${textOf(word)} is no integer.`);
  return value;
}
