import { randomUUID } from 'node:crypto';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import { script, SharedLink } from '../../state/links/shared-link.ts';
import type { HealthSharing, SharedBreaker, SharingHooks } from './sharing.ts';
import type { KeyOrModel } from '../../sdk/health.ts';

/** Before every name in the store. What stands in braces keeps all on one node of a cluster, where one script may touch them. */
const prefix = 'sluice:{health}:';
const keys = [`${prefix}changes`, `${prefix}places`, `${prefix}revision`];

/** How often the store is asked for news, in milliseconds. */
const askEvery = 400;
/** Most places that the store keeps: the ones that changed last. */
const mostPlaces = 5_000;
/** How long the store keeps what nobody changes any more. */
const keptFor = 3_600_000;

const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Writes down how places stand. KEYS: changes (place by revision), places, revision. ARGV: milliseconds to keep all, most places, then
 * for each place its id, the milliseconds of its cool-down and of its rest, and the remainder as JSON. Times are kept by the store's
 * own clock, the only one that all gateways share.
 */
const tellScript = script(`${clock}
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

/** What has changed since a revision. ARGV: it. Gives: the revision of now, the time of now, then id and state of each place. */
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

/** Takes a turn, or makes it longer. ARGV: who, milliseconds. Gives 0, or how long it belongs to somebody else. */
const claimScript = script(`
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return math.max(1, redis.call('PTTL', KEYS[1])) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
`);

/** Gives a turn back. ARGV: who. */
const releaseScript = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`);

const scripts = [tellScript, newsScript, claimScript, releaseScript];

/** The way to other gateways through the Redis of these settings. */
export function redisSharing(store: SharedStoreSettings): (hooks: SharingHooks) => HealthSharing {
  return (hooks) => new RedisSharing(store, hooks);
}

/**
 * Health shared through Redis. Changes are written as they come, many with one command; those of others are asked for a few times a
 * second. While the store is gone nothing is kept for it: when it is back it is told all that holds then.
 */
class RedisSharing implements HealthSharing {
  readonly #link: SharedLink;
  readonly #hooks: SharingHooks;
  readonly #gateway = randomUUID();
  readonly #asking: NodeJS.Timeout;
  #revision = 0;
  /** What waits to be told, by place: the last word counts. */
  #waiting = new Map<string, SharedBreaker>();
  #telling: Promise<void> | undefined;
  #isAsking = false;

  constructor(store: SharedStoreSettings, hooks: SharingHooks) {
    this.#hooks = hooks;
    this.#link = new SharedLink({
      store,
      prefix,
      scripts,
      // Whoever counts in the same store reports when it goes and comes.
      report: () => {},
      onUp: () => this.#onUp(),
    });
    this.#asking = setInterval(() => void this.#ask(), askEvery).unref();
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  tell(place: SharedBreaker): void {
    if (!this.#link.isUp) return;
    const id = idOf(place.name);
    const before = this.#waiting.get(id);
    this.#waiting.set(id, before?.forgotten === true ? { ...place, forgotten: true } : place);
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = undefined;
    });
  }

  async claim(name: KeyOrModel, lease: number): Promise<number | undefined> {
    if (!this.#link.isUp) return undefined;
    try {
      return await this.#link.run<number>(claimScript, [turnOf(name)], [this.#gateway, String(lease)]);
    } catch {
      return undefined;
    }
  }

  release(name: KeyOrModel): void {
    if (!this.#link.isUp) return;
    this.#link.run(releaseScript, [turnOf(name)], [this.#gateway]).catch(() => {});
  }

  async close(): Promise<void> {
    clearInterval(this.#asking);
    await this.#telling;
    this.#link.close();
  }

  #onUp(): void {
    // A store that was started anew counts from 0 again.
    this.#revision = 0;
    for (const place of this.#hooks.known()) this.tell(place);
    void this.#ask();
  }

  async #tellAll(): Promise<void> {
    // What changes in the same turn is told together.
    await Promise.resolve();
    while (this.#waiting.size > 0) {
      const places = [...this.#waiting.values()].slice(0, 200);
      for (const { name } of places) this.#waiting.delete(idOf(name));
      const values = places.flatMap((place) => [
        idOf(place.name),
        String(Math.ceil(place.cool)),
        String(Math.ceil(place.rest)),
        this.#text(place),
      ]);
      try {
        // oxlint-disable-next-line no-await-in-loop -- one command at a time, so that the last word about a place is the last
        await this.#link.run(tellScript, keys, [String(keptFor), String(mostPlaces), ...values]);
      } catch {
        this.#waiting.clear();
      }
    }
  }

  #text({ rests, base, last, forgotten }: SharedBreaker): string {
    return JSON.stringify({ by: this.#gateway, rests, base, last, forgotten });
  }

  async #ask(): Promise<void> {
    if (this.#isAsking || !this.#link.isUp) return;
    this.#isAsking = true;
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
      // The link makes itself anew; until then this process knows what it knows.
    } finally {
      this.#isAsking = false;
    }
  }

  /** Another gateway's word; undefined for one of our own, and for what no gateway writes. */
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

function turnOf(name: KeyOrModel): string {
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
