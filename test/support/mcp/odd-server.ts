import { setTimeout as wait } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

/** Returns an MCP server, made with the official SDK, whose tools do what tests need: answer, hang, grow, vanish, end the process. */
export function oddServer(name = 'odd'): McpServer {
  const server = new McpServer(
    { name, version: '1.0.0' },
    { capabilities: { logging: {}, tools: { listChanged: true } } },
  );
  const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
  server.registerTool(
    'echo',
    { description: 'Repeats a text.', inputSchema: z.object({ text: z.string() }) },
    async ({ text: input }) => text(`${name}: ${input}`),
  );
  server.registerTool('process', { description: 'Tells about the process.' }, async () =>
    text(JSON.stringify({ pid: process.pid, env: process.env })),
  );
  server.registerTool(
    'sleep',
    { description: 'Waits.', inputSchema: z.object({ ms: z.number(), stubborn: z.boolean().optional() }) },
    async ({ ms, stubborn }, ctx) => {
      const token = ctx.mcpReq._meta?.progressToken;
      if (token !== undefined)
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: token, progress: 1, total: 2, message: 'half' },
        });
      await wait(ms, undefined, stubborn === true ? {} : { signal: ctx.mcpReq.signal });
      return text('slept');
    },
  );
  server.registerTool(
    'grow',
    { description: 'Answers with many bytes.', inputSchema: z.object({ bytes: z.number() }) },
    async ({ bytes }) => text('x'.repeat(bytes)),
  );
  server.registerTool(
    'babble',
    { description: 'Writes lines that are no messages, then answers.' },
    async () => {
      process.stdout.write('this is no JSON\n{"jsonrpc":"1.0"}\n\n[]\n{"a":\n');
      return text('babbled');
    },
  );
  server.registerTool('die', { description: 'Kills the process.' }, async () => {
    process.kill(process.pid, 'SIGKILL');
    return text('alive');
  });
  server.registerTool('fail', { description: 'Fails.' }, async () => ({
    ...text('it broke'),
    isError: true,
  }));
  const old = server.registerTool('before', { description: 'Gets another name.' }, async () =>
    text('renamed'),
  );
  server.registerTool('rename', { description: 'Renames a tool.' }, async () => {
    old.update({ name: 'after' });
    return text('done');
  });
  server.registerTool('ask', { description: 'Asks the user.' }, async (ctx) => {
    const answer = await ctx.mcpReq.elicitInput({
      message: 'Your name?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
    });
    return text(JSON.stringify(answer));
  });
  server.registerPrompt(
    'greet',
    { description: 'Greets.', argsSchema: z.object({ who: z.string() }) },
    ({ who }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: `Greet ${who} for ${name}` } }],
    }),
  );
  server.registerResource('note', `note://${name}/first`, { mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, text: `a note of ${name}` }],
  }));
  return server;
}
