import type { ChatSettings } from '../../model/chat.ts';
import type { SettingRow } from '../_shared/settings.ts';
import { readResponseFormat } from './response-format.ts';

/**
 * Every setting of this format that the neutral model has a word for. Of two rows with one name the later one wins on reading and the
 * first one is written. Reasoning, and log probabilities (a word of `include`), are read and written by files of their own.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_output_tokens', kind: 'integer', min: 1 },
  { name: 'temperature', path: 'temperature', kind: 'number', min: 0, max: 2 },
  { name: 'topP', path: 'top_p', kind: 'number', min: 0, max: 1 },
  { name: 'topLogprobs', path: 'top_logprobs', kind: 'integer', min: 0, max: 20 },
  { name: 'responseFormat', path: 'text.format', kind: 'object', read: readResponseFormat },
  { name: 'verbosity', path: 'text.verbosity', kind: 'string' },
  { name: 'parallelTools', path: 'parallel_tool_calls', kind: 'boolean' },
  // Deprecated in favour of `safety_identifier`, but the one that every provider of this dialect knows: so it is the one written.
  { name: 'user', path: 'user', kind: 'string' },
  { name: 'user', path: 'safety_identifier', kind: 'string' },
  { name: 'metadata', path: 'metadata', kind: 'object' },
  { name: 'serviceTier', path: 'service_tier', kind: 'string' },
  { name: 'promptCacheKey', path: 'prompt_cache_key', kind: 'string' },
];

/** Settings that encode-request writes by itself, because more than one field or rule is involved. */
export const handled: ReadonlySet<string> = new Set([
  'responseFormat',
  'verbosity',
  'user',
  'serviceTier',
  'reasoning',
  'logprobs',
  'choices',
]);

/** Service tiers that this format has words for; another format's word is not sent. */
export const serviceTiers: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'ultrafast',
]);

/** The client's path of a setting. */
export function settingPath(name: keyof ChatSettings): string {
  if (name === 'reasoning') return 'reasoning';
  if (name === 'logprobs') return 'include';
  return rows.find((row) => row.name === name)?.path ?? name;
}
