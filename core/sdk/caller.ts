import { callKey } from './call-key.ts';
import type { ApiKey } from './api-key.ts';

/**
 * Who calls: set by the plugin that identifies, read by all behind it. Absent when no such plugin runs.
 *
 * @example
 * const team = call.get(caller)?.note ?? 'none';
 */
export const caller = callKey<ApiKey>('caller');
