/** Checks requests and responses, and refuses, masks, tags or alerts. */
import { definePlugin } from 'sluice';
import { guardOptions } from './options.ts';

export { guardTags } from './tags.ts';

/**
 * Runs the operator's checks on requests and responses, streamed or not: masks personal data and secrets before a provider sees them and
 * restores them in the response, or refuses the call.
 */
export default definePlugin({
  name: 'guard',
  stage: 'shape',
  before: ['cache'],
  whenListed: true,
  options: guardOptions,
  editable: ['checks', 'alerts'],
  // The rest is loaded where it is wanted.
  async setup(chosen, tools) {
    const { startGuard } = await import('./handler.ts');
    return startGuard(chosen, tools);
  },
});
