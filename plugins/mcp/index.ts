/** Callers reach many MCP servers at one address, with their keys of the gateway. */
import { definePlugin } from 'sluice';
import { options } from './options.ts';

/**
 * Serves the tools, prompts and resources of all configured MCP servers at `/mcp`, for API keys of the gateway. Each key sees those that it
 * may use, under names that are unique. Each tool call is limited, recorded and charged as a call of its own.
 */
export default definePlugin({
  name: 'mcp',
  stage: 'shape',
  whenListed: true,
  options,
  // The rest is loaded where it is wanted.
  async signIn(request) {
    const { signIn } = await import('./sign-in/index.ts');
    return signIn(request);
  },
  async setup(chosen, tools) {
    const { addEndpoint } = await import('./endpoint/index.ts');
    await addEndpoint(chosen, tools);
    return function mcp(call, next) {
      return next(call);
    };
  },
});
