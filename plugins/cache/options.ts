/** Options of the cache. */
import { z } from 'zod';
import type { ApiKey } from 'sluice';

const seconds = z.number().min(0).max(31_536_000);

/** Settings of semantic hits. */
export const semanticOptions = z.strictObject({
  /** The model that makes the embeddings, by its name in this gateway. */
  model: z.string().min(1),
  /** Least cosine similarity of two questions that get one answer, 0 to 1. */
  threshold: z.number().min(0).max(1).default(0.95),
  /** Maximum number of questions that are remembered for one system prompt, set of tools and scope. The oldest are forgotten first. */
  perPartition: z.int().min(1).max(10_000).default(1_000),
  /**
   * Where vectors of questions are kept: `memory`: in each worker, with the package `sqlite-vec`; `pgvector`: in the gateway's database, which
   * must be PostgreSQL with the extension `vector`; `auto`: in such a database where there is one, otherwise in memory.
   */
  store: z.enum(['auto', 'memory', 'pgvector']).default('auto'),
  /** Maximum number of questions that are remembered: by each worker in memory, or in the database. */
  questions: z.int().min(1).max(1_000_000).default(10_000),
  /** Maximum number of characters of a question that is embedded. Longer ones have exact hits alone. */
  longest: z.int().min(1).max(100_000).default(8_000),
  /** Maximum time in milliseconds that a call waits for its embedding. */
  timeout: z.int().min(1).max(60_000).default(2_000),
  /** Who pays for embeddings: the key of the call, or nobody. */
  chargeTo: z.enum(['caller', 'operator']).default('caller'),
});

/** Options of the plugin. */
export const cacheOptions = z.strictObject({
  /** Seconds for which a response is fresh. */
  ttl: z.number().min(1).max(31_536_000).default(3_600),
  /** Seconds after the ttl in which a stale response is given at once, while one call asks the provider anew. */
  staleWhileRevalidate: seconds.default(0),
  /** Seconds after the ttl in which a stale response is given where the providers fail. */
  staleIfError: seconds.default(0),
  /**
   * Calls that share responses: `key`: the calls of one API key; `shared`: all callers of the gateway; or a function that returns the name of the
   * group whose calls share them. Where it returns undefined, the key is alone.
   */
  scope: z
    .union([
      z.enum(['key', 'shared']),
      z.custom<(key: ApiKey) => string | undefined>((value) => typeof value === 'function', {
        error: "must be 'key', 'shared' or a function of the API key",
      }),
    ])
    .default('key'),
  /** Cost of a hit: nothing, the cost of the response (`full`), or a share of that between 0 and 1. */
  charge: z.union([z.enum(['nothing', 'full']), z.number().min(0).max(1)]).default('nothing'),
  /** How fast hits are streamed: all at once, or so many events a second. */
  pace: z.union([z.literal('at once'), z.number().min(1).max(10_000)]).default('at once'),
  /** Whether equal calls at the same time share one request to the provider. Each worker process has requests of its own. */
  singleFlight: z.boolean().default(true),
  /** The highest temperature of requests that are cached. Absent: any. With it, requests that name no temperature are not cached. */
  maxTemperature: z.number().min(0).max(2).optional(),
  /** Whether requests are cached whose model may use tools that the provider runs, such as a web search. */
  hostedTools: z.boolean().default(false),
  /** Whether responses are cached that call tools. */
  toolCalls: z.boolean().default(false),
  /** Whether responses are cached that ended at the output limit. */
  length: z.boolean().default(true),
  /** Whether responses are cached in which the model declines. */
  refusals: z.boolean().default(false),
  /** Settings in which equal requests may differ. */
  ignore: z
    .array(z.enum(['user', 'metadata', 'promptCacheKey', 'cacheMarks']))
    .max(4)
    .default([]),
  /** Maximum size of a response that is kept, in bytes. */
  maxEntryBytes: z
    .int()
    .min(1_024)
    .max(64 * 1024 * 1024)
    .default(1024 * 1024),
  /**
   * Maximum size of all responses that a worker keeps in memory, and of those that it is recording, in bytes. 0 keeps them in the database
   * alone, and then records at most 16 of the longest at the same time.
   */
  memoryBytes: z
    .int()
    .min(0)
    .max(64 * 1024 * 1024 * 1024)
    .default(64 * 1024 * 1024),
  /** Maximum number of responses in the database, which all workers share; 0 keeps them in memory alone. */
  databaseEntries: z.int().min(0).max(10_000_000).default(10_000),
  /** Semantic hits: the answer to a question that means the same. Absent: exact hits alone. */
  semantic: semanticOptions.optional(),
});

/** Options with their defaults. */
export type CacheOptions = z.output<typeof cacheOptions>;

/** Options of semantic hits with their defaults. */
export type SemanticOptions = z.output<typeof semanticOptions>;

/** Returns the share of its price that a hit costs. */
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

/** Returns the milliseconds after which a response is of no use to anybody. */
export function lifetimeOf({
  ttl,
  staleWhileRevalidate,
  staleIfError,
}: Pick<CacheOptions, 'ttl' | 'staleWhileRevalidate' | 'staleIfError'>): number {
  return (ttl + Math.max(staleWhileRevalidate, staleIfError)) * 1_000;
}
