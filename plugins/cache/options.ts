/** Options of the cache. */
import { z } from 'zod';
import type { ApiKey } from 'sluice';

const seconds = z.number().min(0).max(31_536_000);

/** Settings of semantic hits. */
export const semanticOptions = z.strictObject({
  /** Embedding model, by its public name in this gateway. */
  model: z.string().min(1),
  /** Minimum cosine similarity of two questions that share a response, from 0 to 1. */
  threshold: z.number().min(0).max(1).default(0.95),
  /** Maximum number of stored questions for one system prompt, set of tools and scope. The oldest are removed first. */
  perPartition: z.int().min(1).max(10_000).default(1_000),
  /**
   * Store of the vectors of questions. `memory`: in each worker, with the package `sqlite-vec`. `pgvector`: in the gateway's database,
   * which must be PostgreSQL with the extension `vector`. `auto`: `pgvector` if the database supports it, otherwise `memory`.
   */
  store: z.enum(['auto', 'memory', 'pgvector']).default('auto'),
  /** Maximum number of stored questions: in memory of each worker, or in the database. */
  questions: z.int().min(1).max(1_000_000).default(10_000),
  /** Maximum number of characters of a question that is embedded. Longer questions have only exact hits. */
  longest: z.int().min(1).max(100_000).default(8_000),
  /** Maximum time in milliseconds that a call waits for its embedding. */
  timeout: z.int().min(1).max(60_000).default(2_000),
  /** Charging of embeddings: to the key of the call (`caller`), or to no key (`operator`). */
  chargeTo: z.enum(['caller', 'operator']).default('caller'),
});

/** Options of the plugin. */
export const cacheOptions = z.strictObject({
  /** Seconds for which a response is fresh. */
  ttl: z.number().min(1).max(31_536_000).default(3_600),
  /** Seconds after `ttl` in which a stale response is returned at once, while one call refreshes it at the provider. */
  staleWhileRevalidate: seconds.default(0),
  /** Seconds after `ttl` in which a stale response is returned if the providers fail. */
  staleIfError: seconds.default(0),
  /**
   * Calls that share responses. `key`: calls of one API key. `shared`: all calls. Or a function that returns the name of a group whose
   * calls share responses; for undefined, the key shares with no other key.
   */
  scope: z
    .union([
      z.enum(['key', 'shared']),
      z.custom<(key: ApiKey) => string | undefined>((value) => typeof value === 'function', {
        error: "must be 'key', 'shared' or a function of the API key",
      }),
    ])
    .default('key'),
  /** Charge of a hit: `nothing`, the cost of the original response (`full`), or a share of that cost from 0 to 1. */
  charge: z.union([z.enum(['nothing', 'full']), z.number().min(0).max(1)]).default('nothing'),
  /** Speed of streamed hits: `at once`, or a number of events per second. */
  pace: z.union([z.literal('at once'), z.number().min(1).max(10_000)]).default('at once'),
  /** Lets equal concurrent calls share one request to the provider. Only within one worker process. */
  singleFlight: z.boolean().default(true),
  /**
   * Maximum temperature of requests that are cached. With this option, requests without a temperature are not cached. Default: any
   * temperature.
   */
  maxTemperature: z.number().min(0).max(2).optional(),
  /** Caches responses to requests with tools that the provider runs, such as web search. */
  hostedTools: z.boolean().default(false),
  /** Caches responses with tool calls. */
  toolCalls: z.boolean().default(false),
  /** Caches responses that ended at the output limit. */
  length: z.boolean().default(true),
  /** Caches responses in which the model refuses. */
  refusals: z.boolean().default(false),
  /** Request settings that are ignored when requests are compared. */
  ignore: z
    .array(z.enum(['user', 'metadata', 'promptCacheKey', 'cacheMarks']))
    .max(4)
    .default([]),
  /** Maximum bytes of a response that is cached. */
  maxEntryBytes: z
    .int()
    .min(1_024)
    .max(64 * 1024 * 1024)
    .default(1024 * 1024),
  /**
   * Maximum bytes of all responses that a worker caches in memory, and of all that it is recording. 0: caches only in the database, and
   * records at most 16 responses of maximum size at the same time.
   */
  memoryBytes: z
    .int()
    .min(0)
    .max(64 * 1024 * 1024 * 1024)
    .default(64 * 1024 * 1024),
  /** Maximum number of responses in the database, which all workers share. 0: caches only in memory. */
  databaseEntries: z.int().min(0).max(10_000_000).default(10_000),
  /** Semantic hits: the response to a question with the same meaning. Default: only exact hits. */
  semantic: semanticOptions.optional(),
});

/** Options with their defaults. */
export type CacheOptions = z.output<typeof cacheOptions>;

/** Options of semantic hits with their defaults. */
export type SemanticOptions = z.output<typeof semanticOptions>;

/** Returns the share of the original cost that a hit is charged. */
export function shareOf(charge: CacheOptions['charge']): number {
  if (charge === 'nothing') return 0;
  return charge === 'full' ? 1 : charge;
}

/** Returns the maximum number of bytes that the responses which a worker is recording take together. */
export function recordingBytesOf({
  memoryBytes,
  maxEntryBytes,
}: Pick<CacheOptions, 'memoryBytes' | 'maxEntryBytes'>): number {
  return memoryBytes === 0 ? 16 * maxEntryBytes : memoryBytes;
}

/** Returns the milliseconds after which a response is neither fresh nor usable as stale. */
export function lifetimeOf({
  ttl,
  staleWhileRevalidate,
  staleIfError,
}: Pick<CacheOptions, 'ttl' | 'staleWhileRevalidate' | 'staleIfError'>): number {
  return (ttl + Math.max(staleWhileRevalidate, staleIfError)) * 1_000;
}
