/* An MCP server as a process: `node stdio-server.ts NAME [silent]`. Tests start it through the gateway. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { oddServer } from './odd-server.ts';

const [, , name = 'odd', mode] = process.argv;
console.error(`${name} is ready`);
if (mode === 'silent') process.stdin.resume();
else serveStdio(() => oddServer(name));
