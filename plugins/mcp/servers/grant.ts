/** Result of a sign-in of the operator: the gateway's registration at the authorization server of one MCP server, and a token. */
import { z } from 'zod';

const schema = z.object({
  /** The MCP server for which it is. */
  url: z.url(),
  issuer: z.string().min(1),
  clientId: z.string().min(1),
  clientSecret: z.string().min(1).optional(),
  /** Authentication method of the client at the token endpoint. */
  clientAuth: z.string().optional(),
  /** Absent where the authorization server gives none out: the access token is used until it ends. */
  refreshToken: z.string().min(1).optional(),
  accessToken: z.string().min(1),
});

/** A sign-in. */
export type Grant = z.output<typeof schema>;

const prefix = 'mcp-';

/** Returns a grant as text without spaces, for an environment variable. */
export function writeGrant(grant: Grant): string {
  return prefix + Buffer.from(JSON.stringify(grant)).toString('base64url');
}

/** Parses such a text; undefined for any other one. */
export function readGrant(text: string): Grant | undefined {
  if (!text.startsWith(prefix)) return undefined;
  try {
    const read = schema.safeParse(JSON.parse(Buffer.from(text.slice(prefix.length), 'base64url').toString()));
    return read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}

/** Returns true when the grant is for servers of the address's origin: no other one gets its tokens. */
export function isGrantFor(text: string, address: string): boolean {
  const grant = readGrant(text);
  return grant !== undefined && URL.parse(grant.url)?.origin === URL.parse(address)?.origin;
}
