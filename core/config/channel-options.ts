/** The options of every channel: what is wrong with them, what is secret in them. */
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
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'is no name of a header';
  return connectionHeaders.has(name.toLowerCase())
    ? 'belongs to the connection: it cannot be changed'
    : undefined;
}

/** Names that `problemOf` finds sound. */
function namesThat(problemOf: (name: string) => string | undefined): z.ZodArray<z.ZodString> {
  return z.array(
    z.string().superRefine((name, context) => {
      const problem = problemOf(name);
      if (problem !== undefined) context.addIssue(`"${name}" ${problem}`);
    }),
  );
}

/** Values under such names. */
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

const headerValue = z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'has signs that no header may have');

/** Addresses of storage, or names of what a cloud project keeps. */
const addresses = z.array(
  z.string().superRefine((entry, context) => {
    if (!/^(?:[a-z][a-z0-9+.-]*:\/|projects\/)/i.test(entry))
      context.addIssue(`"${entry}" is no address. Write s3://bucket/folder/, or the name of a resource.`);
    else if (/^[a-z0-9+.-]+:\/\/[^/]+$/i.test(entry))
      context.addIssue(`"${entry}" names no object. Write "${entry}/" for all that is below it.`);
  }),
);

/** What every channel kind takes. */
export const commonOptions = z.object({
  id: z
    .string()
    .min(1)
    .optional()
    .describe('name of the entry in logs, metrics and the usage log; default: the name of the kind'),
  key: secret(z.string()).optional().describe('the key of the provider; several take turns: see keys'),
  keys: z
    .array(secret(z.string().min(1)))
    .min(1)
    .optional()
    .describe('several keys, which take turns: one that fails is left alone for a while'),
  baseUrl: secretUrl(z.url({ protocol: /^https?$/ }))
    .optional()
    .describe('address of the provider; default: that of the kind'),
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
              .describe('known model behind it, whose price, limits and traits apply'),
          }),
        ]),
      ),
      z.literal('discover'),
    ])
    .optional()
    .describe(
      'names and patterns, or public names with the names of the provider; default: those that the kind knows',
    ),
  discover: z.boolean().optional().describe('asks the provider which models it has'),
  priority: z.number().optional().describe('higher ones are asked first; default 0'),
  weight: z
    .number()
    .positive()
    .optional()
    .describe('share of the calls among channels of one priority; default 1'),
  headers: z
    .strictObject({
      set: membersThat(headerProblem, headerValue).optional().describe('values by name'),
      remove: namesThat(headerProblem).optional().describe('names'),
    })
    .optional()
    .describe('headers that are set in or removed from requests to the provider'),
  body: z
    .strictObject({
      set: membersThat(pathProblem, z.json()).optional().describe('values by path'),
      remove: namesThat(pathProblem).optional().describe('paths'),
    })
    .optional()
    .describe('members that are set in or removed from requests to the provider, by their paths'),
  systemPrompt: z
    .union([
      z.string().min(1),
      z.strictObject({
        text: z.string().min(1).describe('the text'),
        place: z
          .enum(['before', 'after', 'instead'])
          .optional()
          .describe("before or after the client's own system prompt, or instead of it; default before"),
      }),
    ])
    .optional()
    .describe('a text for every chat'),
  proxy: secretUrl(
    z
      .url({ protocol: /^https?$/, error: 'must be http://host:port or https://host:port' })
      .refine(isDecodable, 'has a password that is not written with % codes'),
  )
    .optional()
    .describe('address of an HTTP proxy on the way to the provider'),
  timeouts: z
    .strictObject({
      connect: milliseconds.optional().describe('for a connection to the provider'),
      idle: milliseconds.optional().describe('longest silence of the provider'),
      firstToken: milliseconds
        .optional()
        .describe('from the request of an attempt to the first event of its response'),
      attempt: milliseconds.optional().describe('for one attempt, until the first event of its response'),
    })
    .optional()
    .describe('timeouts in milliseconds, in place of those of the settings'),
  tls: z
    .strictObject({
      ca: z
        .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
        .optional()
        .describe('certificates of authorities, as PEM text; default: those of Node'),
      cert: z.string().min(1).optional().describe('certificate that is shown to the provider, as PEM text'),
      key: secret(z.string().min(1)).optional().describe('private key of that certificate'),
      servername: z
        .string()
        .min(1)
        .optional()
        .describe("name in the provider's certificate; default: the host of its address"),
      verify: z.boolean().optional().describe('false accepts any certificate; default true'),
    })
    .optional()
    .describe('certificates, for a provider with an authority of its own'),
  routingFields: z
    .array(z.string().min(1))
    .optional()
    .describe('fields of requests by which the provider chooses models by itself'),
  mayRead: addresses.optional().describe('addresses of storage that requests may name to be read'),
  mayWrite: addresses.optional().describe('addresses of storage that requests may name to be written'),
  learn: z
    .boolean()
    .optional()
    .describe('false: sends every request as it is, also members that a model refused; default true'),
  traits: z
    .record(z.string().min(1), traitsOption)
    .optional()
    .describe('what models can do, by name or pattern, where it differs from what is known'),
});

/**
 * The options of an entry of a kind: those that every kind takes, and its own. Where a kind has an `identity` or `credentials` of its own, the
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

/** The identity of the options where it is one that every kind takes. */
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

/** What is wrong with options that have the right types, as the ends of sentences. */
export function optionProblems({ models, tls }: ChannelOptions): readonly string[] {
  const problems: string[] = [];
  const names = models === undefined || models === 'discover' ? undefined : modelsProblem(models);
  if (names !== undefined) problems.push(`option "models": ${names}.`);
  if (tls === undefined) return problems;
  const { ca, cert, key } = tls;
  if ((cert === undefined) !== (key === undefined))
    problems.push('option "tls": cert and key come together. Give both, or neither.');
  for (const [name, part] of Object.entries({
    ca,
    'cert and key': cert && key ? { cert, key } : undefined,
  })) {
    if (part !== undefined && !isPem(part))
      problems.push(`option "tls": ${name} cannot be read. Give the text of a PEM file, not its path.`);
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

/** Throws for what cannot be read. */
function isCertificate(text: string): boolean {
  return new X509Certificate(text).raw.length > 0;
}

/** Sentences about options that are allowed and dangerous. */
export function optionWarnings({ tls }: ChannelOptions): readonly string[] {
  if (tls?.verify !== false) return [];
  return ['tls.verify is false: whoever sits between here and the provider can read its key and every call.'];
}
