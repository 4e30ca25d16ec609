/** Options of the plugin. */
import { z } from 'zod';
import { addressShape, processShape } from '../mcp/servers/config.ts';

const name = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'must be a letter, then letters, digits, _ or -');
const patterns = z.array(z.string().min(1));

const access = {
  /** Names or patterns (`*`) of models for which the server may be used. */
  models: patterns.default(['*']),
  /** Names, ids or patterns (`*`) of API keys that may use the server. Calls without a key count as the name ''. */
  keys: patterns.default(['*']),
  /** Names of the tools that may be used. Default: all. */
  allowedTools: z.array(z.string().min(1)).optional(),
  /** Charge for each call of one of its tools, in micro-dollars. */
  chargeMicroDollars: z.int().min(0).max(1_000_000_000).default(0),
};

const server = z.union([
  z.strictObject({ ...addressShape, ...access }),
  z.strictObject({ ...processShape, ...access }),
]);

const offer = z.strictObject({
  /** Names of servers. */
  servers: z.array(name).min(1),
  /** Names or patterns of models whose requests get the tools. */
  models: patterns.default(['*']),
  /** Names, ids or patterns of API keys whose requests get the tools. */
  keys: patterns.default(['*']),
});

/** Schema of the options. */
export const options = z.strictObject({
  /** MCP servers, by name. A request refers to one by this label, by its URL, or by `sluice:NAME` in place of a URL. */
  servers: z.record(name, server).default({}),
  /** Servers whose tools are added to requests that do not name them. */
  offer: z.array(offer).default([]),
  /** Lets clients name servers by URL that the operator has not configured. Only public addresses are connected to. */
  clientServers: z.boolean().default(false),
  /** Maximum number of requests to the model for one call. */
  maxRounds: z.int().min(1).max(100).default(10),
  /** Seconds after which no further round begins and running tool calls are cancelled. */
  maxSeconds: z.number().min(1).max(3_600).default(300),
  /** Maximum number of tool calls in one round. The model gets an error for each further one. */
  maxCallsPerRound: z.int().min(1).max(128).default(16),
  /** Maximum number of tool calls of one client's call that run at the same time. */
  concurrency: z.int().min(1).max(64).default(8),
  /** Timeout of one tool call, and of listing a server's tools, in seconds. */
  toolTimeout: z.number().min(0.1).max(600).default(60),
  /** Maximum bytes of one result. The model gets an error in place of a longer one. */
  maxResultBytes: z
    .int()
    .min(1_024)
    .max(64 * 1024 * 1024)
    .default(262_144),
  /** Maximum bytes of all results of one call. At this limit no further round begins. */
  maxTotalBytes: z
    .int()
    .min(1_024)
    .max(256 * 1024 * 1024)
    .default(1_048_576),
  /** Maximum number of servers in one request. */
  maxServers: z.int().min(1).max(64).default(8),
  /** Maximum number of tools of all servers in one request. */
  maxTools: z.int().min(1).max(1_024).default(128),
  /** Maximum bytes of the definitions of these tools. */
  maxToolBytes: z
    .int()
    .min(1_024)
    .max(16 * 1024 * 1024)
    .default(262_144),
});

/** Checked options. */
export type Options = z.output<typeof options>;

/** One server of the operator. */
export type ServerOptions = z.output<typeof server>;
