/** Options of the admin plugin for signing in by OpenID Connect. */
import { secret } from 'sluice';
import { z } from 'zod';

const text = z.string().trim().min(1).max(500);

/** Returns true for addresses of this machine, to which plain HTTP is allowed. */
const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

/** Access that the members of a group get. */
export const accessRule = z.strictObject({
  /** Name or id of the group, as the provider writes it. `*`: everybody who signs in. */
  group: text,
  /** Role of its members. The first rule of the list that fits and names a role or an organisation decides both. */
  role: z.enum(['admin', 'auditor', 'member']).optional(),
  /** Id (`org_…`) or name of the organisation to which its members are restricted. */
  organisation: text.optional(),
  /** Id (`team_…`) or name of the team to which its members belong. */
  team: text.optional(),
  /** True when its members lead the team. */
  lead: z.boolean().optional(),
});

/** Access that the members of a group get. */
export type AccessRule = Readonly<z.output<typeof accessRule>>;

/** Options of one identity provider. */
const provider = z.strictObject({
  /** Names the provider in addresses: `https://gateway.example.com/api/admin/sign-in/ID/callback` is what the provider redirects to. */
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be of lower-case letters, digits and hyphens'),
  /** URL of the provider, as its discovery document writes it. HTTPS, except on this machine. */
  issuer: z.url({ protocol: /^https?$/ }).refine((url) => {
    const parsed = new URL(url);
    return parsed.protocol === 'https:' || isLoopback(parsed);
  }, 'must be an https address'),
  clientId: text,
  /** Absent for a public client. */
  clientSecret: secret(z.string().min(1).max(1_000)).optional(),
  /** Scopes to request. `offline_access` lets the gateway look at the groups again during a session. */
  scopes: z
    .array(z.string().regex(/^[\u0021\u0023-\u005B\u005D-\u007E]{1,200}$/))
    .max(30)
    .default(['openid', 'profile', 'email']),
  /** Further parameters of the request to sign in: `{ prompt: 'consent' }`, or `{ access_type: 'offline' }` for a refresh token from Google. */
  authorizationParameters: z
    .record(z.string().regex(/^[a-z_]{1,60}$/), z.string().max(500))
    .refine((all) => Object.keys(all).length <= 20, 'must have at most 20 parameters')
    .default({}),
  /** Text of the button on the login page. */
  label: z.string().trim().min(1).max(60),
  /** Claim with the names of the groups. A dotted name such as `realm_access.roles` leads into objects. */
  groupsClaim: text.default('groups'),
  /** Without rules everybody with an account signs in, as the member that an administrator has made of them. */
  rules: z.array(accessRule).max(200).default([]),
  /** Domains of the emails that may sign in. Empty: all. */
  allowedDomains: z.array(z.string().toLowerCase().min(1).max(253)).max(100).default([]),
  /** True: a person who signs in for the first time becomes a user. */
  createsUsers: z.boolean().default(true),
  /** True: a person who signs in for the first time becomes the user that has the same, verified email. */
  linksByEmail: z.boolean().default(false),
  /** True: emails count as verified without the claim `email_verified`, because only the operator's own directory can set them. */
  trustsEmail: z.boolean().default(false),
  /** Claim that equals the `externalId` of users whom a directory has provisioned: `oid` for Entra ID, `sub` for Okta. */
  externalIdClaim: text.optional(),
  /** Minutes after which the groups of a running session are requested again, if the provider issued a refresh token. */
  recheckMinutes: z.number().min(0.01).max(1_440).default(15),
});

/** Settings of one provider of identities. */
export type ProviderOptions = Readonly<z.output<typeof provider>>;

/** The option `signIn` of the admin plugin. */
export const signInOptions = z
  .strictObject({
    /** Address under which browsers reach the gateway: `https://gateway.example.com`. Needed with providers. */
    publicUrl: z
      .url({ protocol: /^https?$/ })
      .refine((url) => new URL(url).pathname === '/' && new URL(url).search === '', 'must have no path')
      .transform((url) => new URL(url).origin)
      .optional(),
    /** OpenID Connect providers by which people sign in. */
    providers: z
      .array(provider)
      .max(20)
      .default([])
      .refine(
        (all) => new Set(all.map(({ id }) => id)).size === all.length,
        'must have ids that differ from each other',
      ),
  })
  .refine(({ publicUrl, providers }) => providers.length === 0 || publicUrl !== undefined, {
    path: ['publicUrl'],
    message: 'is needed because providers redirect to it',
  });

/** Settings of signing in. */
export type SignInOptions = Readonly<z.output<typeof signInOptions>>;
