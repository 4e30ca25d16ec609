/** Schema of the options that every channel kind takes, and checks of their values. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { pathProblem } from '../upstream/body-edits.ts';
import { connectionHeaders } from '../sdk/header-fields.ts';
import type { ChannelConfig, ChannelEntry, ChannelOptions, OAuth2Identity } from '../sdk/define.ts';
import { proxyAuthorization } from '../upstream/proxy.ts';
import { secret, secretUrl } from '../settings/secret.ts';
import { traitsOption } from './traits-option.ts';
import { modelsProblem } from './channel-models.ts';

const milliseconds = z.int().min(50);

function headerProblem(name: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'is not a valid header name';
  return connectionHeaders.has(name.toLowerCase())
    ? 'belongs to the connection and cannot be changed'
    : undefined;
}

/** Returns the schema of a list of names for which `problemOf` returns undefined. */
function namesThat(problemOf: (name: string) => string | undefined): z.ZodArray<z.ZodString> {
  return z.array(
    z.string().superRefine((name, context) => {
      const problem = problemOf(name);
      if (problem !== undefined) context.addIssue(`"${name}" ${problem}`);
    }),
  );
}

/** Returns the schema of values by names for which `problemOf` returns undefined. */
function membersThat<Value extends z.ZodType>(
  problemOf: (name: string) => string | undefined,
  value: Value,
): z.ZodRecord<z.ZodString, Value> {
  return z.record(z.string(), value).superRefine((members, context) => {
    for (const name of Object.keys(members)) {
      const problem = problemOf(name);
      if (problem !== undefined) context.addIssue(`"${name}" ${problem}`);
    }
  });
}

/** See `OAuth2Identity`. */
const oauth2Identity = z.strictObject({
  kind: z.literal('oauth2'),
  tokenUrl: secretUrl(z.url({ protocol: /^https?$/ })),
  clientId: z.string().min(1),
  clientSecret: secret(z.string().min(1)),
  scope: z.string().min(1).optional(),
  audience: z.string().min(1).optional(),
  clientAuth: z.enum(['basic', 'post']).default('basic'),
});

const headerValue = z
  .string()
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'has characters that a header must not contain');

/** Schema of a list of storage URLs, or of names of resources in a cloud project. */
const addresses = z.array(
  z.string().superRefine((entry, context) => {
    if (!/^(?:[a-z][a-z0-9+.-]*:\/|projects\/)/i.test(entry))
      context.addIssue(
        `"${entry}" is not a storage URL. Write s3://bucket/folder/, or the name of a resource.`,
      );
    else if (/^[a-z0-9+.-]+:\/\/[^/]+$/i.test(entry))
      context.addIssue(`"${entry}" names no object. Write "${entry}/" for all that is below it.`);
  }),
);

/** Schema of the options that every channel kind takes. */
export const commonOptions = z.object({
  id: z
    .string()
    .min(1)
    .optional()
    .describe('id of the channel in logs, metrics and the usage log. Default: the name of the kind'),
  key: secret(z.string()).optional().describe('API key of the provider. For several keys, use `keys`'),
  keys: z
    .array(secret(z.string().min(1)))
    .min(1)
    .optional()
    .describe(
      'API keys of the provider, used in turn. A key that fails repeatedly is not used until its cooldown ends',
    ),
  baseUrl: secretUrl(z.url({ protocol: /^https?$/ }))
    .optional()
    .describe('base URL of the provider. Default: the URL of the kind'),
  models: z
    .union([
      z.array(z.string().min(1)).min(1),
      z.record(
        z.string().min(1),
        z.union([
          z.string().min(1),
          z.strictObject({
            name: z.string().min(1).describe('name of the model at the provider'),
            baseModel: z
              .string()
              .min(1)
              .optional()
              .describe('model of the catalogue whose price, limits and traits apply to this one'),
          }),
        ]),
      ),
      z.literal('discover'),
    ])
    .optional()
    .describe(
      'models that the channel serves: a list of names and patterns, an object that maps public names to names at the provider, or `discover`. Default: the models of the kind',
    ),
  discover: z.boolean().optional().describe('true: requests the list of models from the provider'),
  priority: z
    .number()
    .optional()
    .describe('priority of the channel: channels with a higher number are tried first. Default: 0'),
  weight: z
    .number()
    .positive()
    .optional()
    .describe('weight of the channel: its share of the calls among channels with equal priority. Default: 1'),
  headers: z
    .strictObject({
      set: membersThat(headerProblem, headerValue).optional().describe('values to set, by header name'),
      remove: namesThat(headerProblem).optional().describe('names of headers to remove'),
    })
    .optional()
    .describe('headers that are set in or removed from requests to the provider'),
  body: z
    .strictObject({
      set: membersThat(pathProblem, z.json()).optional().describe('values to set, by path in the body'),
      remove: namesThat(pathProblem).optional().describe('paths of fields to remove'),
    })
    .optional()
    .describe('body fields that are set in or removed from requests to the provider, by path'),
  systemPrompt: z
    .union([
      z.string().min(1),
      z.strictObject({
        text: z.string().min(1).describe('text of the system prompt'),
        place: z
          .enum(['before', 'after', 'instead'])
          .optional()
          .describe(
            "position of the text: before or after the client's own system prompt, or instead of it. Default: `before`",
          ),
      }),
    ])
    .optional()
    .describe('system prompt that is added to every chat request'),
  proxy: secretUrl(
    z
      .url({ protocol: /^https?$/, error: 'must be http://host:port or https://host:port' })
      .refine(isDecodable, 'has a password that is not percent-encoded'),
  )
    .optional()
    .describe('URL of an HTTP proxy for connections to the provider'),
  timeouts: z
    .strictObject({
      connect: milliseconds.optional().describe('maximum time to connect to the provider'),
      idle: milliseconds.optional().describe('maximum time without data from the provider'),
      firstToken: milliseconds
        .optional()
        .describe(
          'maximum time from the request of an attempt to the first event of its response, for streams',
        ),
      attempt: milliseconds
        .optional()
        .describe('maximum time of one attempt, until the first event of its response'),
    })
    .optional()
    .describe('timeouts in milliseconds, in place of those of the settings `timeouts` and `routing`'),
  tls: z
    .strictObject({
      ca: z
        .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
        .optional()
        .describe('certificates of trusted authorities, as PEM text. Default: those of Node'),
      cert: z.string().min(1).optional().describe('client certificate for the provider, as PEM text'),
      key: secret(z.string().min(1))
        .optional()
        .describe('private key of the client certificate, as PEM text'),
      servername: z
        .string()
        .min(1)
        .optional()
        .describe("host name in the provider's certificate. Default: the host of its URL"),
      verify: z.boolean().optional().describe('false: accepts any certificate. Default: true'),
    })
    .optional()
    .describe('options of TLS for connections to the provider'),
  routingFields: z
    .array(z.string().min(1))
    .optional()
    .describe(
      'request fields by which the provider selects other models than `model`. Keys whose models are restricted, and keys with a budget in dollars, cannot use them',
    ),
  mayRead: addresses.optional().describe('storage URLs that requests may name for reading'),
  mayWrite: addresses.optional().describe('storage URLs that requests may name for writing'),
  learn: z
    .boolean()
    .optional()
    .describe('false: sends request fields also after a model has refused them. Default: true'),
  traits: z
    .record(z.string().min(1), traitsOption)
    .optional()
    .describe('traits of models, by name or pattern, that differ from those of the catalogue'),
});

/**
 * Returns the options of an entry of a kind: those that every kind takes, and its own. Where a kind has an `identity` or `credentials` of its own, the
 * values that every kind takes count all the same.
 */
export function optionsSchema({ spec, options: { identity, credentials } }: ChannelEntry): z.ZodObject {
  const isOAuth2 =
    typeof identity === 'object' && identity !== null && 'kind' in identity && identity.kind === 'oauth2';
  const isForwarding = credentials === 'client';
  const ofKind = schemas.get(spec) ?? new Map<string, z.ZodObject>();
  schemas.set(spec, ofKind);
  const variant = `${isOAuth2} ${isForwarding}`;
  const schema = ofKind.get(variant) ?? makeSchema(spec, isOAuth2, isForwarding);
  ofKind.set(variant, schema);
  return schema;
}

/** Schemas by kind and variant, because zod compiles each schema when it first parses a value. */
const schemas = new WeakMap<ChannelEntry['spec'], Map<string, z.ZodObject>>();

function makeSchema(spec: ChannelEntry['spec'], isOAuth2: boolean, isForwarding: boolean): z.ZodObject {
  const own = { ...commonOptions.shape, ...spec.options?.shape };
  return z.strictObject({
    ...own,
    ...(isOAuth2 || !('identity' in own) ? { identity: oauth2Identity.optional() } : {}),
    ...(isForwarding || !('credentials' in own) ? { credentials: z.literal('client').optional() } : {}),
  });
}

/** Returns the identity of the options where it is one that every kind takes. */
export function oauth2IdentityOf({
  identity,
}: ChannelConfig<Record<string, unknown>>): OAuth2Identity | undefined {
  const { kind } = (identity ?? {}) as { readonly kind?: unknown };
  return kind === 'oauth2' ? (identity as OAuth2Identity) : undefined;
}

function isDecodable(address: string): boolean {
  try {
    proxyAuthorization(new URL(address));
    return true;
  } catch {
    return false;
  }
}

/** Returns the problems of options that the schema accepts, as sentences. */
export function optionProblems({ models, tls }: ChannelOptions): readonly string[] {
  const problems: string[] = [];
  const names = models === undefined || models === 'discover' ? undefined : modelsProblem(models);
  if (names !== undefined) problems.push(`option "models": ${names}.`);
  if (tls === undefined) return problems;
  const { ca, cert, key } = tls;
  if ((cert === undefined) !== (key === undefined))
    problems.push('option "tls": cert and key belong together. Set both, or neither.');
  for (const [name, part] of Object.entries({
    ca,
    'cert and key': cert && key ? { cert, key } : undefined,
  })) {
    if (part !== undefined && !isPem(part))
      problems.push(`option "tls": ${name} is not valid. Set the text of a PEM file, not its path.`);
  }
  return problems;
}

function isPem(part: string | readonly string[] | { readonly cert: string; readonly key: string }): boolean {
  try {
    if (typeof part === 'string') return isCertificate(part);
    if (!('cert' in part)) return part.every(isCertificate);
    createSecureContext(part);
    return true;
  } catch {
    return false;
  }
}

/** Returns true for a certificate. Throws for any other text. */
function isCertificate(text: string): boolean {
  return new X509Certificate(text).raw.length > 0;
}

/** Returns warnings about options that are allowed but dangerous. */
export function optionWarnings({ tls }: ChannelOptions): readonly string[] {
  if (tls?.verify !== false) return [];
  return [
    'tls.verify is false: anyone between the gateway and the provider can read the key and every call. Set tls.ca instead to trust the authority of the provider.',
  ];
}
