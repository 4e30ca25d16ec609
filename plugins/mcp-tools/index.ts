import type { z } from 'zod';
import { definePlugin } from 'sluice';
import { options, type Options } from './options.ts';

/**
 * Lets models of every provider call tools of MCP servers, in a loop that the gateway runs. The servers are named in a request (`mcp` tools
 * of Responses, `mcp_servers` of messages) or offered by the operator. If the provider itself calls the servers of a request, the request
 * is sent to it unchanged.
 */
export default definePlugin({
  name: 'mcp-tools',
  stage: 'shape',
  // Each round goes back to the channel that has encrypted the reasoning of the one before.
  before: ['reasoning-affinity', 'session-affinity'],
  whenListed: true,
  options: checked(),
  async setup(chosen, tools) {
    // Loaded where it is wanted.
    const { McpTools } = await import('./handler.ts');
    const served = new McpTools(chosen, tools);
    tools.onClose(() => served.close());
    tools.callsMcpServers((call) => served.callsServersOf(call));
    return function mcpTools(call, next) {
      return served.answer(call, next);
    };
  },
});

/** Returns the schema of the options, which checks that offers name existing servers. */
function checked() {
  return options.superRefine(({ servers, offer }, context) => {
    offer.forEach((one, index) => {
      for (const name of one.servers)
        if (!Object.hasOwn(servers, name))
          context.addIssue({
            code: 'custom',
            path: ['offer', index, 'servers'],
            message: `names "${name}", which is not one of the servers`,
          });
    });
  }) satisfies z.ZodType<Options>;
}
