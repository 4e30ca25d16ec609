import { definePlugin, GatewayError } from 'sluice';
import { cacheOptions } from './options.ts';

/**
 * Caches responses: equal requests get one response, in every format, and equal concurrent calls share one request to the provider. The
 * header `x-sluice-cache` is `hit`, `miss` or `stale`.
 */
export default definePlugin({
  name: 'cache',
  stage: 'shape',
  whenListed: true,
  // A hit calls no model, so it needs no target.
  before: ['model-limits', 'reasoning-affinity', 'session-affinity'],
  options: cacheOptions,
  async setup(options, tools) {
    const { semantic } = options;
    // Loaded where it is wanted.
    const { ResponseCache } = await import('./response-cache.ts');
    const index =
      semantic === undefined
        ? undefined
        : await (await import('./semantic/index.ts')).SemanticIndex.open(semantic, options, tools);
    const responses = new ResponseCache(options, tools, index);
    tools.onClose(() => responses.close());
    tools.adminRoute('DELETE', '/api/cache', async (ctx) => {
      const { key, group, ...others } = ctx.query;
      const scope = scopeIn(key, group);
      if (Object.keys(others).length > 0)
        throw new GatewayError('invalid_request', 'This route has only the parameters "key" and "group".');
      const deleted = await responses.purge(scope);
      ctx.body = { purged: scope ?? 'all', ...(deleted === undefined ? {} : { deleted }) };
    });
    return async function cache(call, next) {
      return responses.answer(call, next);
    };
  },
});

/** Returns the scope that a request names; undefined for all. */
function scopeIn(key: unknown, group: unknown): string | undefined {
  if (key === undefined && group === undefined) return undefined;
  const [name, value] = key === undefined ? ['group', group] : ['key', key];
  if (typeof value !== 'string' || value === '' || (key !== undefined && group !== undefined))
    throw new GatewayError(
      'invalid_request',
      'Send one "key", or one "group", or neither to purge everything.',
    );
  return `${name}:${value}`;
}
