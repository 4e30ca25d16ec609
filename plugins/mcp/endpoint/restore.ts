/** Brings a transport to the state in which it was when its session began in another worker. */
import type { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';

/**
 * Sends the transport the client's first request again. Capabilities of the client are left out, because a session that may be set up anywhere
 * has no server that asks the client.
 */
export async function repeatInitialize(
  transport: WebStandardStreamableHTTPServerTransport,
  protocolVersion: string,
): Promise<void> {
  const request = new Request('http://gateway/', {
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: '',
  });
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'restored', version: '1' } };
  const parsedBody = { jsonrpc: '2.0', id: 'initialize', method: 'initialize', params };
  const response = await transport.handleRequest(request, { parsedBody });
  const answer = await response.text();
  if (!response.ok) throw new Error(`A session of MCP could not be restored: ${answer.slice(0, 500)}`);
}
