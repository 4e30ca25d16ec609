import { callKey } from './call-key.ts';
import type { ApiKey } from './api-key.ts';

/**
 * The key of a call: set by the plugin that identifies, read by all behind it. Absent when no such plugin runs. Observers also see the key of a
 * call that was refused because the key is disabled, has expired, or may not be used from this address.
 *
 * @example
 * const team = call.get(caller)?.note ?? 'none';
 */
export const caller = callKey<ApiKey>('caller');
