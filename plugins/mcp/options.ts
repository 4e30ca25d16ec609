/** Options of the plugin. */
import { z } from 'zod';
import { addressShape, processShape } from './servers/config.ts';

/** Schema of the prefix before `__`. No underscore at its end and no two in a row, so that each tool name can be split in one way only. */
const prefix = z
  .string()
  .max(32)
  .regex(
    /^(?:[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)?$/,
    'must be letters, digits, hyphens and single underscores',
  );

/** Patterns of names: `*` stands for any characters. */
const patterns = z.array(z.string().min(1).max(200)).max(1_000);

/** Schema of the price of one call, in micro-dollars. */
const price = z.int().min(0).max(1_000_000_000);

const servedShape = {
  /** Stands before each name of the server with `__`: `github__search`. Empty for one server at most. Default: the server's name. */
  prefix: prefix.optional(),
  /**
   * `shared`: one connection for all callers. `session`: each session has a connection, or process, of its own, so that callers do not share
   * state, and the server may ask the caller's client for sampling, elicitation and roots and write to its log.
   */
  connection: z.enum(['shared', 'session']).default('shared'),
  /** Tools, by the names that the server gives them. */
  tools: z.strictObject({ allow: patterns.default(['*']), deny: patterns.default([]) }).prefault({}),
  /** Names or ids of the API keys that may use the server. Default: all. */
  keys: patterns.optional(),
  /** Price of a call in micro-dollars, in place of `chargeMicroDollars`. */
  chargeMicroDollars: price.optional(),
  /** Timeout of a call in seconds, in place of `limits.seconds`. */
  seconds: z.number().min(0.1).max(3_600).optional(),
};

const server = z.union([
  z.strictObject({ ...processShape, ...servedShape }),
  z.strictObject({ ...addressShape, ...servedShape }),
]);

/** Options with their defaults. */
export const options = z
  .strictObject({
    /** Path of the endpoint. */
    path: z
      .string()
      .regex(/^\/[A-Za-z0-9/_-]*[A-Za-z0-9_-]$/, 'must be a path such as /mcp')
      .default('/mcp'),
    /** MCP servers, by name. */
    servers: z.record(prefix.min(1), server).default({}),
    /**
     * Access of keys to tools, prompts and resources, by the names that clients see. If there is an entry, keys without one have no access.
     */
    access: z
      .array(
        z.strictObject({
          /** Names or ids of API keys. */
          keys: patterns.min(1),
          allow: patterns.default(['*']),
          deny: patterns.default([]),
        }),
      )
      .max(1_000)
      .default([]),
    /** Price of a tool call in micro-dollars, charged to the budget of its key after the tool has run. */
    chargeMicroDollars: price.default(0),
    limits: z
      .strictObject({
        /** Maximum number of tool calls of one key in a minute, in each process. The limits of the key apply too. Default: no limit. */
        callsPerMinute: z.int().min(1).optional(),
        /** Maximum bytes of one result as JSON. */
        resultBytes: z
          .int()
          .min(1_024)
          .max(64 * 1024 * 1024)
          .default(1024 * 1024),
        /** Timeout of a tool call, in seconds. */
        seconds: z.number().min(0.1).max(3_600).default(60),
        /** Maximum number of sessions in memory of one process. Above it, the least recently used session is removed. */
        sessions: z.int().min(1).max(100_000).default(1_000),
        /** Maximum number of sessions of one key in all processes. */
        sessionsPerKey: z.int().min(1).max(10_000).default(20),
        /** Idle time after which a session ends, in minutes. */
        idleMinutes: z.number().min(0.01).max(10_080).default(30),
        /** Maximum number of entries on one page of a list. */
        pageSize: z.int().min(1).max(10_000).default(200),
      })
      .prefault({}),
    /** Origins of web pages that may use the endpoint (`https://app.example.com`), beside those of this machine. */
    origins: z.array(z.url({ protocol: /^https?$/ })).default([]),
  })
  .superRefine(({ servers }, context) => {
    const seen = new Map<string, string>();
    for (const [name, { prefix: own = name }] of Object.entries(servers)) {
      const other = seen.get(own);
      if (other !== undefined)
        context.addIssue({
          code: 'custom',
          path: ['servers', name, 'prefix'],
          message: `is that of the server "${other}", too`,
        });
      seen.set(own, name);
    }
  });

/** Options as the plugin gets them. */
export type McpOptions = z.output<typeof options>;

/** One server of the options. */
export type ServedConfig = McpOptions['servers'][string];
