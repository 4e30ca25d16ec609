import { compileLua, luaText, type LuaValue } from './lua.ts';

type Value = Map<string, number> | string[];

interface Entry {
  readonly value: Value;
  expires: number;
}

/** The commands that scripts of rates use, in memory. Sorted sets and hashes are maps to numbers. */
export class MemoryRedis {
  #entries = new Map<string, Entry>();
  /** Microseconds since 1970. */
  readonly #clock: () => number;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Runs a script as one step. */
  run(text: string, keys: readonly string[], values: readonly string[]): readonly unknown[] {
    const reply = compileLua(text)(keys, values, (...words) => this.#call(words.map(luaText)));
    if (!Array.isArray(reply)) return [reply];
    return reply.slice(1).map((value) => (typeof value === 'number' ? Math.trunc(value) : value));
  }

  /** Takes the oldest message out of a list. */
  pop(list: string): string | undefined {
    const value = this.#find(list)?.value;
    return Array.isArray(value) ? value.shift() : undefined;
  }

  /** All that it has, for a copy that may be behind. */
  snapshot(): ReadonlyMap<string, Entry> {
    return new Map(
      [...this.#entries].map(([key, { value, expires }]) => [
        key,
        { value: Array.isArray(value) ? [...value] : new Map(value), expires },
      ]),
    );
  }

  /** Has only what the copy has. */
  restore(copy: ReadonlyMap<string, Entry>): void {
    this.#entries = new Map(copy);
  }

  /** Number of members of a sorted set whose scores are above one, and whose names begin so. */
  count(key: string, above: number, prefix: string): number {
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

  #now(): number {
    return Math.floor(this.#clock() / 1000);
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expires > this.#now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #map(key: string): Map<string, number> {
    const value = this.#find(key)?.value;
    if (value instanceof Map) return value;
    const made = new Map<string, number>();
    this.#entries.set(key, { value: made, expires: Infinity });
    return made;
  }

  #list(key: string): string[] {
    const value = this.#find(key)?.value;
    if (Array.isArray(value)) return value;
    const made: string[] = [];
    this.#entries.set(key, { value: made, expires: Infinity });
    return made;
  }

  #call([command = '', key = '', ...words]: readonly string[]): LuaValue {
    const [first = '', second = ''] = words;
    switch (command) {
      case 'TIME': {
        const now = this.#clock();
        return [undefined, String(Math.floor(now / 1e6)), String(Math.floor(now % 1e6))];
      }
      case 'PEXPIRE': {
        if (!/^\d+$/.test(first)) throw new Error(`${first} is no integer.`);
        const entry = this.#find(key);
        if (entry !== undefined) entry.expires = this.#now() + Number(first);
        return entry === undefined ? 0 : 1;
      }
      case 'HGET':
      case 'ZSCORE': {
        const value = (this.#find(key)?.value as Map<string, number> | undefined)?.get(first);
        return value === undefined ? false : String(value);
      }
      case 'HGETALL':
        return [
          undefined,
          ...[...this.#map(key)].flatMap(([field, value]): LuaValue[] => [field, String(value)]),
        ];
      case 'HINCRBY': {
        if (!/^-?\d+$/.test(second)) throw new Error(`${second} is no integer.`);
        const map = this.#map(key);
        map.set(first, (map.get(first) ?? 0) + Number(second));
        return map.get(first);
      }
      case 'HDEL':
      case 'ZREM':
        for (const field of words) this.#map(key).delete(field);
        return 0;
      case 'ZADD':
        this.#map(key).set(second, Number(first));
        return 1;
      case 'ZCARD':
        return this.#map(key).size;
      case 'ZREMRANGEBYSCORE':
        for (const [member, score] of this.#map(key))
          if (score <= Number(second)) this.#map(key).delete(member);
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
        return this.#list(key).push(first);
      case 'LTRIM':
        return this.#list(key).splice(0, Math.max(0, this.#list(key).length + Number(first))).length;
      default:
        throw new Error(`${command} is not known here.`);
    }
  }
}
