import { callKey } from './call-key.ts';
import type { SessionWatch } from './format.ts';

/** Observer of the messages of a tunnelled session. Set by the tunnel, and read by the code that charges the session. */
export const tunnelWatch = callKey<SessionWatch>('tunnel watch');
