import { execFile } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { everythingServer } from '../../support/mcp/everything-server.ts';
import { startMcpServer } from '../../support/mcp/http-server.ts';
import { startKeyAdder } from '../../support/mcp/key-adder.ts';

/* The published conformance suite of MCP, against the gateway as a server. */

const suite = new URL(
  '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
  import.meta.url,
).pathname;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Runs the suite and returns what it prints. It exits with 1 where a check fails. */
function run(...args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [suite, ...args], { maxBuffer: 64 * 1024 * 1024 }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

test('all server scenarios pass through the gateway, with a key, in front of a server with sessions', async () => {
  const upstream = await startMcpServer(everythingServer);
  closing.push(() => upstream.close());
  const gateway = await startGateway({
    channels: [demo()],
    plugins: [mcp({ servers: { everything: { url: upstream.url, prefix: '', connection: 'session' } } })],
  });
  closing.push(() => gateway.close());
  const proxy = await startKeyAdder(gateway.url, gateway.key);
  closing.push(() => proxy.close());
  const output = await run('server', '--url', `${proxy.url}/mcp`, '--suite', 'all');
  const lines = output.split('\n');
  expect(lines.filter((line) => line.startsWith('✗'))).toEqual([]);
  expect(lines.filter((line) => line.startsWith('✓')).length).toBeGreaterThanOrEqual(32);
  expect(output).toContain('Total: 44 passed, 0 failed');
});
