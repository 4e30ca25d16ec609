import { randomUUID } from 'node:crypto';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import { script, SharedLink } from '../../state/links/shared-link.ts';
import type { HealthSharing, SharedBreaker, SharingHooks } from './sharing.ts';
import type { KeyOrModel } from '../../sdk/health.ts';

/** Prefix of all keys. The hash tag in braces keeps them on one node of a cluster, where one script may access them. */
const prefix = 'sluice:{health}:';
const keys = [`${prefix}changes`, `${prefix}places`, `${prefix}revision`];

/** Polling interval in milliseconds. */
const pollInterval = 400;
/** Maximum number of breakers in the store: those that changed last. */
const mostPlaces = 5_000;
/** Time in milliseconds after which states without changes expire. */
const keptFor = 3_600_000;

const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Stores states of breakers. KEYS: changes (id by revision), states, revision. ARGV: expiry in milliseconds, maximum number of breakers, then
 * for each breaker its id, the milliseconds of its cooldown and of its rest, and the other fields as JSON. Times are measured by the
 * store's clock, the only one that all gateways share.
 */
const publishScript = script(`${clock}
for i = 3, #ARGV, 4 do
  local revision = redis.call('INCR', KEYS[3])
  redis.call('ZADD', KEYS[1], revision, ARGV[i])
  local times = string.format('%.0f|%.0f|', now + ARGV[i + 1], now + ARGV[i + 2])
  redis.call('HSET', KEYS[2], ARGV[i], times .. ARGV[i + 3])
end
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2])
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, over - 1)) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id)
  end
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
return 1
`);

/** Reads changes since a revision. ARGV: the revision. Returns: current revision, current time, then id and state of each breaker. */
const newsScript = script(`${clock}
local since = tonumber(ARGV[1])
local revision = tonumber(redis.call('GET', KEYS[3]) or '0')
local reply = { tostring(revision), string.format('%.0f', now) }
if revision == since then return reply end
if revision < since then since = 0 end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since, '+inf')) do
  local state = redis.call('HGET', KEYS[2], id)
  if state then
    reply[#reply + 1] = id
    reply[#reply + 1] = state
  end
end
return reply
`);

/** Acquires or extends a lease. ARGV: owner, milliseconds. Returns 0, or the milliseconds for which another gateway holds it. */
const acquireScript = script(`
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return math.max(1, redis.call('PTTL', KEYS[1])) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
`);

/** Releases a lease. ARGV: owner. */
const releaseScript = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`);

const scripts = [publishScript, newsScript, acquireScript, releaseScript];

/** Returns the connection to other gateways through the Redis of these settings. */
export function redisSharing(store: SharedStoreSettings): (hooks: SharingHooks) => HealthSharing {
  return (hooks) => new RedisSharing(store, hooks);
}

/**
 * Shares circuit breakers through Redis. Writes changes at once, in batches, and polls those of other gateways. Drops changes while Redis
 * is unavailable, and writes all states when it is available again.
 */
class RedisSharing implements HealthSharing {
  readonly #link: SharedLink;
  readonly #hooks: SharingHooks;
  readonly #gateway = randomUUID();
  readonly #polling: NodeJS.Timeout;
  #revision = 0;
  /** Changes that wait to be written, the latest of each breaker. */
  #waiting = new Map<string, SharedBreaker>();
  #publishing: Promise<void> | undefined;
  #isPolling = false;

  constructor(store: SharedStoreSettings, hooks: SharingHooks) {
    this.#hooks = hooks;
    this.#link = new SharedLink({
      store,
      prefix,
      scripts,
      // The rate limits, which use the same store, report its failures.
      report: () => {},
      onUp: () => this.#onUp(),
    });
    this.#polling = setInterval(() => void this.#poll(), pollInterval).unref();
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  publish(breaker: SharedBreaker): void {
    if (!this.#link.isUp) return;
    const id = idOf(breaker.name);
    const before = this.#waiting.get(id);
    this.#waiting.set(id, before?.forgotten === true ? { ...breaker, forgotten: true } : breaker);
    this.#publishing ??= this.#publishAll().finally(() => {
      this.#publishing = undefined;
    });
  }

  async acquire(name: KeyOrModel, lease: number): Promise<number | undefined> {
    if (!this.#link.isUp) return undefined;
    try {
      return await this.#link.run<number>(acquireScript, [leaseKeyOf(name)], [this.#gateway, String(lease)]);
    } catch {
      return undefined;
    }
  }

  release(name: KeyOrModel): void {
    if (!this.#link.isUp) return;
    this.#link.run(releaseScript, [leaseKeyOf(name)], [this.#gateway]).catch(() => {});
  }

  async close(): Promise<void> {
    clearInterval(this.#polling);
    await this.#publishing;
    this.#link.close();
  }

  #onUp(): void {
    // A store that was restarted counts from 0.
    this.#revision = 0;
    for (const breaker of this.#hooks.known()) this.publish(breaker);
    void this.#poll();
  }

  async #publishAll(): Promise<void> {
    // Changes of one turn of the event loop are written together.
    await Promise.resolve();
    while (this.#waiting.size > 0) {
      const places = [...this.#waiting.values()].slice(0, 200);
      for (const { name } of places) this.#waiting.delete(idOf(name));
      const values = places.flatMap((breaker) => [
        idOf(breaker.name),
        String(Math.ceil(breaker.cool)),
        String(Math.ceil(breaker.rest)),
        this.#text(breaker),
      ]);
      try {
        // oxlint-disable-next-line no-await-in-loop -- one command at a time, so that the latest state of a breaker is written last
        await this.#link.run(publishScript, keys, [String(keptFor), String(mostPlaces), ...values]);
      } catch {
        this.#waiting.clear();
      }
    }
  }

  #text({ rests, base, last, forgotten }: SharedBreaker): string {
    return JSON.stringify({ by: this.#gateway, rests, base, last, forgotten });
  }

  async #poll(): Promise<void> {
    if (this.#isPolling || !this.#link.isUp) return;
    this.#isPolling = true;
    try {
      const [revision, now, ...rest] = await this.#link.run<string[]>(newsScript, keys, [
        String(this.#revision),
      ]);
      this.#revision = Number(revision);
      for (let index = 0; index + 1 < rest.length; index += 2) {
        const received = this.#read(rest[index] ?? '', rest[index + 1] ?? '', Number(now));
        if (received !== undefined) this.#hooks.adopt(received);
      }
      this.#hooks.tick();
    } catch {
      // The connection reconnects automatically. Until then this process uses its own states.
    } finally {
      this.#isPolling = false;
    }
  }

  /** Returns the state that another gateway wrote; undefined for one of this gateway, and for invalid text. */
  #read(id: string, state: string, now: number): SharedBreaker | undefined {
    const name = nameOf(parsed(id));
    const found = /^(\d+)\|(\d+)\|(.*)$/s.exec(state);
    const value = parsed(found?.[3] ?? '');
    if (name === undefined || found === null || !isRecord(value) || value['by'] === this.#gateway)
      return undefined;
    const { rests, base, forgotten } = value;
    if (!isCount(rests) || !isCount(base)) return undefined;
    const last = troubleOf(value['last']);
    return {
      name,
      cool: Math.max(0, Number(found[1]) - now),
      rest: Math.max(0, Number(found[2]) - now),
      rests,
      base,
      ...(last === undefined ? {} : { last }),
      ...(forgotten === true ? { forgotten } : {}),
    };
  }
}

function idOf({ channel, key, model }: KeyOrModel): string {
  return JSON.stringify(model === undefined ? [channel, key] : [channel, key, model]);
}

function leaseKeyOf(name: KeyOrModel): string {
  return `${prefix}turn:${idOf(name)}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function nameOf(id: unknown): KeyOrModel | undefined {
  if (!Array.isArray(id)) return undefined;
  const [channel, key, model] = id as unknown[];
  if (typeof channel !== 'string' || typeof key !== 'string') return undefined;
  return typeof model === 'string' ? { channel, key, model } : { channel, key };
}

function troubleOf(value: unknown): SharedBreaker['last'] {
  if (!isRecord(value)) return undefined;
  const { at, code, message } = value;
  if (typeof at !== 'number' || typeof code !== 'string' || typeof message !== 'string') return undefined;
  return { at, code, message };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
