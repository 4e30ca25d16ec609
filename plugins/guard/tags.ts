import { callKey } from 'sluice';

/** Names of the checks with the action `tag` that a call met, for other plugins. */
export const guardTags = callKey<readonly string[]>('guard tags');
