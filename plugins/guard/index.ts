/** Checks requests and responses, and refuses, masks, tags or alerts. */
import { definePlugin } from 'sluice';
import { guardOptions } from './options.ts';

export { guardTags } from './tags.ts';

/**
 * Callers find personal data and secrets masked before a provider sees them and restored in the response, and requests and responses refused
 * that the operator's checks do not let pass, whole and streamed.
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
