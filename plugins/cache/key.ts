/** Computes the cache key of a call: a SHA-256 digest of its scope, some of its headers and its canonical request. */
import { createHash } from 'node:crypto';
import { caller, type Call } from 'sluice';
import { canonical, UnsafeNumber } from './canonical.ts';
import { obstacleOf, type Obstacle } from './cacheable.ts';
import type { CacheOptions } from './options.ts';

/** Changes whenever entries of an earlier version can no longer be read. */
const version = 1;

/** Key of the entry of a request. */
export interface CacheKey {
  /** Calls that share the response: `key:key_…`, `group:blue`, `shared`. */
  readonly scope: string;
  /** The digest of scope, headers and request. */
  readonly digest: string;
  readonly headers: readonly string[];
}

/** Size in bytes from which a request is first looked up by its bytes. */
const long = 16_384;

/** Maximum number of long requests whose digests are remembered. */
const mostRemembered = 5_000;

/** Computes the keys of calls. */
export class Keys {
  readonly #options: CacheOptions;
  readonly #ignored: ReadonlySet<string>;
  /** Digests of long requests, by those of their bytes and outlines. */
  readonly #remembered = new Map<string, string>();

  constructor(options: CacheOptions) {
    this.#options = options;
    this.#ignored = new Set(options.ignore);
  }

  /** Returns the key of a call, or the reason why it is not cached. */
  of(call: Call): CacheKey | Obstacle {
    // Obstacles show without the long texts of a request.
    const obstacle = obstacleOf(call.outline, this.#options);
    if (obstacle !== undefined) return obstacle;
    const scope = scopeOf(call, this.#options.scope);
    const headers = headersOf(call);
    try {
      return { scope, headers, digest: this.#digestOf(call, scope, headers) };
    } catch (error) {
      if (error instanceof UnsafeNumber) return 'number';
      throw error;
    }
  }

  #digestOf(call: Call, scope: string, headers: readonly string[]): string {
    const { bytes } = call.wire;
    if (bytes.length < long) return digestOf(scope, headers, canonical(call.request, this.#ignored));
    // Decoding 250 KB takes 3 ms (November 2026). Bytes and outline determine the request, because the outline has all that plugins changed.
    const outline = JSON.stringify([scope, headers, canonical(call.outline, this.#ignored)]);
    const name = createHash('sha256').update(bytes).update(outline).digest('base64url');
    const known = this.#remembered.get(name);
    if (known !== undefined) return known;
    const digest = digestOf(scope, headers, canonical(call.request, this.#ignored));
    this.#remembered.set(name, digest);
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= mostRemembered) break;
      this.#remembered.delete(oldest);
    }
    return digest;
  }
}

/** Returns the SHA-256 of these parts, in base64url. */
export function digestOf(...parts: readonly unknown[]): string {
  return createHash('sha256')
    .update(JSON.stringify([version, ...parts]))
    .digest('base64url');
}

/** Returns the scope of a call. Calls without an API key share the scope `nobody`. */
function scopeOf(call: Call, scope: CacheOptions['scope']): string {
  if (scope === 'shared') return 'shared';
  const key = call.get(caller);
  if (key === undefined) return 'nobody';
  const group = scope === 'key' ? undefined : scope(key);
  return group === undefined ? `key:${key.id}` : `group:${group}`;
}

/**
 * Returns the request headers that change a provider's response or decide which fields may be dropped. The version of an API is not among them,
 * because it only determines how requests are written.
 */
function headersOf({ wire: { headers } }: Call): readonly string[] {
  const first = (...names: readonly string[]): string =>
    names.map((name) => String(headers[name] ?? '').trim()).find((value) => value !== '') ?? '';
  return [
    first('anthropic-beta', 'a-beta'),
    first('openai-beta'),
    first('x-sluice-strict') === 'true' ? 'strict' : '',
  ];
}
