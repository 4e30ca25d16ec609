/** Options of one MCP server: the process to start, or the address to call. */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { readGrant } from './grant.ts';

/** Names of environment variables and of headers. */
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable');
const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be the name of a header');

/** Credentials of the gateway's own registration. */
const registered = z.strictObject({
  /** Id with which the gateway is registered at the authorization server. */
  clientId: z.string().min(1),
  /** Secret of that registration. The grant `client_credentials` needs it, or `privateKey`. */
  clientSecret: secret(z.string().min(1)).optional(),
  /** Private key (PKCS #8 in PEM) with which the gateway signs assertions in place of a secret: `private_key_jwt`. */
  privateKey: secret(z.string().min(1)).optional(),
  /** Algorithm of these signatures. */
  algorithm: z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'EdDSA']).default('RS256'),
  /** Refresh token that somebody obtained for the gateway. Absent: the gateway uses the grant `client_credentials`. */
  refreshToken: secret(z.string().min(1)).optional(),
  /** Space-separated scopes. Default: those that the server requests. */
  scope: z.string().min(1).optional(),
  /** Identifier of the authorization server (`https://auth.example.com`). No other one gets the credentials. */
  issuer: z.url({ protocol: /^https?$/ }),
});

/** A sign-in of the operator. */
const signedIn = z.strictObject({
  /** Output of `sluice login mcp URL`: the gateway uses the server on behalf of the person who signed in. */
  signIn: secret(z.string().min(1)),
});

/** Bounds of one connection. */
const bounds = {
  /** Maximum number of requests that run on one connection at the same time. Four times as many wait. */
  concurrency: z.int().min(1).max(1024).default(16),
  /** Seconds for which the list of tools is kept unless the server announces a change. */
  toolsTtl: z.number().min(1).max(86_400).default(300),
  /** Maximum number of tools, and of pages, that are read of one server. */
  maxTools: z.int().min(1).max(10_000).default(512),
  /** Maximum number of bytes of one message of the server. A longer one fails the request that it answers. */
  maxMessageBytes: z
    .int()
    .min(1024)
    .max(256 * 1024 * 1024)
    .default(8 * 1024 * 1024),
  /** Seconds until the server must have accepted a new connection. A package that `npx` installs first takes its time. */
  connectTimeout: z.number().min(0.1).max(600).default(30),
};

/** Members of a server that the gateway starts. */
export const processShape = {
  command: z.string().min(1),
  args: z.array(z.string()).max(256).default([]),
  /** Environment of the process, besides HOME, LOGNAME, PATH, SHELL, TERM and USER. Nothing else of the gateway's environment is passed. */
  env: z.record(variable, secret(z.string())).default({}),
  /** Folder in which the process runs. Default: that of the gateway. */
  cwd: z.string().min(1).optional(),
  /** Protocol that is offered: `2025` opens with `initialize`, `2026` with `server/discover`, `auto` tries the later one first. */
  protocol: z.enum(['2025', '2026', 'auto']).default('2025'),
  ...bounds,
};

/** Members of a server that is reached by Streamable HTTP. */
export const addressShape = {
  url: secretUrl(z.url({ protocol: /^https?$/ })),
  /** Headers of every request, such as `authorization`. */
  headers: z.record(headerName, secret(z.string())).default({}),
  oauth: z
    .union([
      registered.refine(
        ({ clientSecret, privateKey, refreshToken }) =>
          clientSecret !== undefined || privateKey !== undefined || refreshToken !== undefined,
        'needs clientSecret, privateKey or refreshToken',
      ),
      signedIn.refine(
        ({ signIn }) => readGrant(signIn) !== undefined,
        'needs in signIn what "sluice login mcp URL" has printed',
      ),
    ])
    .optional(),
  /** As for a process. */
  protocol: z.enum(['2025', '2026', 'auto']).default('auto'),
  ...bounds,
};

/** Options of a server that the gateway starts, and nothing else. */
export const processSchema = z.strictObject(processShape);

/** Options of a server that is reached by Streamable HTTP, and nothing else. */
export const addressSchema = z.strictObject(addressShape);

/** A server that the gateway starts. */
export type ProcessConfig = z.output<typeof processSchema>;

/** A server that is reached by Streamable HTTP. */
export type AddressConfig = z.output<typeof addressSchema>;

/** Connection settings of one MCP server. */
export type ServerConfig = ProcessConfig | AddressConfig;

/** Credentials for the authorization server of an MCP server. */
export type OAuthConfig = z.output<typeof registered> | z.output<typeof signedIn>;
