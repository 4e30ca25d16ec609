/** The official SDK's client, an optional package that is loaded when the first server is connected to. */
import type * as client from '@modelcontextprotocol/client';
import { requirePackage } from 'sluice';

/** Exports of the SDK that connections use. */
export interface McpSdk {
  readonly Client: typeof client.Client;
  readonly StreamableHTTPClientTransport: typeof client.StreamableHTTPClientTransport;
  readonly ClientCredentialsProvider: typeof client.ClientCredentialsProvider;
  readonly PrivateKeyJwtProvider: typeof client.PrivateKeyJwtProvider;
  readonly InsufficientScopeError: typeof client.InsufficientScopeError;
  readonly ProtocolError: typeof client.ProtocolError;
  readonly SdkError: typeof client.SdkError;
  readonly SdkHttpError: typeof client.SdkHttpError;
  readonly UnauthorizedError: typeof client.UnauthorizedError;
  readonly auth: typeof client.auth;
  readonly discoverOAuthServerInfo: typeof client.discoverOAuthServerInfo;
  readonly extractWWWAuthenticateParams: typeof client.extractWWWAuthenticateParams;
  parseMessage(value: unknown): client.JSONRPCMessage;
  /** HOME, PATH and the like. */
  defaultEnvironment(): Record<string, string>;
}

/** Version of the SDK that is tested. */
export const sdkVersion = '2';

let loaded: Promise<McpSdk> | undefined;

/** Loads the SDK once. Rejects with what to install where it is missing. */
export function loadSdk(): Promise<McpSdk> {
  return (loaded ??= load());
}

async function load(): Promise<McpSdk> {
  requirePackage('@modelcontextprotocol/client', sdkVersion, 'connect to MCP servers', import.meta.url);
  const [sdk, stdio] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('@modelcontextprotocol/client/stdio'),
  ]);
  return {
    Client: sdk.Client,
    StreamableHTTPClientTransport: sdk.StreamableHTTPClientTransport,
    ClientCredentialsProvider: sdk.ClientCredentialsProvider,
    PrivateKeyJwtProvider: sdk.PrivateKeyJwtProvider,
    InsufficientScopeError: sdk.InsufficientScopeError,
    ProtocolError: sdk.ProtocolError,
    SdkError: sdk.SdkError,
    SdkHttpError: sdk.SdkHttpError,
    UnauthorizedError: sdk.UnauthorizedError,
    auth: sdk.auth,
    discoverOAuthServerInfo: sdk.discoverOAuthServerInfo,
    extractWWWAuthenticateParams: sdk.extractWWWAuthenticateParams,
    parseMessage: (value) => sdk.parseJSONRPCMessage(value),
    defaultEnvironment: () => stdio.getDefaultEnvironment(),
  };
}
