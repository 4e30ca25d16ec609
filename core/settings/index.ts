/** Schema of everything that an operator can set in the config besides plugins and channels. */
import { databaseSchema } from './database.ts';
import { secret } from './secret.ts';
import { z } from 'zod';
import { logLevels } from '../log.ts';
import { isAddressRange } from '../model/addresses.ts';
import { fetchSchema } from './fetch.ts';
import { membersSchema } from './members.ts';
import { pricesSchema } from './prices.ts';
import { drainDelaySchema, overloadSchema, spareWorkerSchema, workersSchema } from './processes.ts';
import { realtimeSchema } from './realtime.ts';
import { healthSchema, routingSchema } from './routing.ts';
import { runtimeConfigSchema } from './runtime-config.ts';
import { secretsSchema } from './secrets.ts';
import { sharedSchema } from './shared.ts';

/** All settings with their defaults. Times are in milliseconds, sizes in bytes. */
export const settingsSchema = z.strictObject({
  listen: z
    .strictObject({
      port: z.int().min(0).max(65_535).default(8080).describe('port to listen on; 0 takes any free port'),
      host: z
        .string()
        .min(1)
        .default('127.0.0.1')
        .describe('address to listen on; `0.0.0.0` listens on every address'),
    })
    .prefault({}),
  database: databaseSchema,
  data: z
    .string()
    .min(1)
    .default('./data')
    .describe('folder for the database and other files that must survive a restart'),
  bootstrapKey: secret(z.string().min(20, 'must have at least 20 characters'))
    .optional()
    .describe('first API key, in place of a random one, for containers and scripts'),
  log: z
    .strictObject({
      level: z.enum(logLevels).default('info').describe('minimum level of log lines that are written'),
    })
    .prefault({}),
  checks: z
    .boolean()
    .optional()
    .describe(
      'true: reports a plugin whose handler breaks the rules of the pipeline with an error that names it. Default: true unless NODE_ENV is production',
    ),
  limits: z
    .strictObject({
      body: z
        .int()
        .min(1024)
        .default(128 * 1024 * 1024)
        .describe('maximum size of a request body, after decompression'),
      depth: z.int().min(8).max(1000).default(128).describe('maximum nesting depth of a JSON body'),
      values: z
        .int()
        .min(1000)
        .default(500_000)
        .describe(
          'maximum number of values in a JSON body. One object with 500,000 fields takes about a second to parse',
        ),
      members: z
        .int()
        .min(100)
        .default(2000)
        .describe('maximum number of fields at the top level of a JSON body, or of a request in a batch'),
      header: z
        .int()
        .min(8192)
        .default(64 * 1024)
        .describe('maximum size of the headers of a request'),
      audio: z
        .int()
        .min(1024)
        .default(25 * 1024 * 1024)
        .describe('maximum size of an audio file'),
      image: z
        .int()
        .min(1024)
        .default(50 * 1024 * 1024)
        .describe('maximum size of an image in a multipart form'),
      video: z
        .int()
        .min(1024)
        .default(100 * 1024 * 1024)
        .describe('maximum size of a file in a multipart form for videos'),
      files: z.int().min(1).max(1000).default(20).describe('maximum number of files in a multipart form'),
      fields: z
        .int()
        .min(1)
        .max(10_000)
        .default(200)
        .describe('maximum number of fields in a multipart form, without its files'),
      inMemory: z
        .int()
        .min(0)
        .default(256 * 1024)
        .describe('size above which a file of a multipart form is written to a temporary file'),
      keys: z
        .int()
        .min(100)
        .max(1_000_000)
        .default(10_000)
        .describe(
          'maximum number of API keys that each process caches in memory, about 1 kB each; others are read from the database when they are used',
        ),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      headers: z
        .int()
        .min(100)
        .default(60_000)
        .describe('maximum time in which the client sends its headers'),
      body: z
        .int()
        .min(100)
        .default(300_000)
        .describe('maximum time in which the client sends its whole request'),
      connect: z.int().min(50).default(10_000).describe('maximum time to connect to a provider'),
      idle: z.int().min(50).default(300_000).describe('maximum time without data from a provider'),
      keepAlive: z
        .int()
        .min(20)
        .default(15_000)
        .describe('idle time after which a keep-alive is sent to the client of a stream'),
      stalled: z
        .int()
        .min(50)
        .default(60_000)
        .describe(
          'maximum time for which a client may leave its send buffer full; then the connection is closed',
        ),
      socket: z
        .int()
        .min(50)
        .default(3_600_000)
        .describe('maximum lifetime of a WebSocket; calls that run on it may finish first'),
      drainDelay: drainDelaySchema,
      drain: z
        .int()
        .min(0)
        .default(30_000)
        .describe('maximum time for running calls to finish when the gateway stops'),
      reload: z
        .int()
        .min(0)
        .max(86_400_000)
        .default(600_000)
        .describe('maximum time for running calls to finish in a process that a reload has replaced'),
    })
    .prefault({}),
  routing: routingSchema,
  health: healthSchema,
  workers: workersSchema,
  spareWorker: spareWorkerSchema,
  overload: overloadSchema,
  fetch: fetchSchema,
  realtime: realtimeSchema,
  shared: sharedSchema,
  runtimeConfig: runtimeConfigSchema,
  secrets: secretsSchema,
  trustedProxies: z
    .array(z.string().refine(isAddressRange, 'must be an IP address or a CIDR range, such as 10.0.0.0/8'))
    .default([])
    .describe('addresses and CIDR ranges of proxies whose X-Forwarded-For is trusted'),
  prices: pricesSchema,
  adminPassword: secret(z.string().min(12, 'must have at least 12 characters'))
    .optional()
    .describe('password of the dashboard and the admin API. Default: a random one, made at the first start'),
  members: membersSchema,
  sampling: z
    .enum(['exclusive', 'forward', 'refuse'])
    .default('exclusive')
    .describe(
      'chat completions in which both `temperature` and `top_p` differ from 1. `exclusive`: `top_p` is dropped and named in `x-sluice-loss`. `forward`: both are sent. `refuse`: 400',
    ),
});

/** The settings in force. */
export type Settings = z.output<typeof settingsSchema>;
