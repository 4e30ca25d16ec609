import { callKey } from './call-key.ts';
import type { SessionWatch } from './format.ts';

/** Who watches the messages of a session that passes through: set by whoever passes them, read by whoever charges for them. */
export const tunnelWatch = callKey<SessionWatch>('tunnel watch');
