/** Finds the authorization server of an MCP server. */
import type { FetchLike, OAuthDiscoveryState } from '@modelcontextprotocol/client';
import { bounded } from './errors.ts';
import type { McpSdk } from './sdk.ts';

/**
 * Returns the authorization server that an MCP server names, with its metadata. Rejects metadata that name another issuer than the address at
 * which they are (RFC 8414, section 3.3), because another server's tokens would be sent there. Servers of 2025-03-26 name no authorization
 * server: for them it is enough that the issuer has the origin of the MCP server.
 */
export async function discoverAuthorization(
  serverUrl: string | URL,
  sdk: McpSdk,
  fetchFn: FetchLike,
  resourceMetadataUrl?: URL,
): Promise<OAuthDiscoveryState> {
  const {
    authorizationServerUrl,
    authorizationServerMetadata: metadata,
    resourceMetadata,
  } = await sdk.discoverOAuthServerInfo(serverUrl, {
    fetchFn,
    skipIssuerMetadataValidation: true,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
  });
  const address = String(authorizationServerUrl);
  if (metadata !== undefined) {
    const isAtIssuer = withoutSlash(metadata.issuer) === withoutSlash(address);
    const isLegacy = resourceMetadata === undefined && originOf(metadata.issuer) === originOf(address);
    if (!isAtIssuer && !isLegacy)
      throw new Error(
        `The metadata of the authorization server ${bounded(address)} name another issuer: ${bounded(metadata.issuer)}`,
      );
  }
  return {
    authorizationServerUrl: address,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl: resourceMetadataUrl.href }),
    ...(metadata === undefined ? {} : { authorizationServerMetadata: metadata }),
    ...(resourceMetadata === undefined ? {} : { resourceMetadata }),
  };
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}

function originOf(url: string): string | undefined {
  return URL.parse(url)?.origin;
}
