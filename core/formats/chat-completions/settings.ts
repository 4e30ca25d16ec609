import type { ChatSettings } from '../../model/chat.ts';
import type { SettingRow } from '../_shared/settings.ts';
import { readResponseFormat } from './response-format.ts';

/**
 * Every setting of this format that the neutral model has a word for. Of two rows with one name the later one wins on reading and the
 * first one is written; `max_completion_tokens` wins over `max_tokens`, as the spec says. Reasoning has several spellings: reasoning.ts.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_tokens', kind: 'integer', min: 1 },
  { name: 'maxOutput', path: 'max_completion_tokens', kind: 'integer', min: 1 },
  { name: 'temperature', path: 'temperature', kind: 'number', min: 0, max: 2 },
  { name: 'topP', path: 'top_p', kind: 'number', min: 0, max: 1 },
  { name: 'topK', path: 'top_k', kind: 'number' },
  { name: 'stop', path: 'stop', kind: 'strings' },
  { name: 'choices', path: 'n', kind: 'integer', min: 1 },
  { name: 'seed', path: 'seed', kind: 'integer' },
  { name: 'frequencyPenalty', path: 'frequency_penalty', kind: 'number', min: -2, max: 2 },
  { name: 'presencePenalty', path: 'presence_penalty', kind: 'number', min: -2, max: 2 },
  { name: 'logprobs', path: 'logprobs', kind: 'boolean' },
  { name: 'topLogprobs', path: 'top_logprobs', kind: 'integer', min: 0, max: 20 },
  { name: 'responseFormat', path: 'response_format', kind: 'object', read: readResponseFormat },
  { name: 'verbosity', path: 'verbosity', kind: 'string' },
  { name: 'parallelTools', path: 'parallel_tool_calls', kind: 'boolean' },
  // Deprecated in favour of `safety_identifier`, but the one that every provider of this dialect knows: so it is the one written.
  { name: 'user', path: 'user', kind: 'string' },
  { name: 'user', path: 'safety_identifier', kind: 'string' },
  { name: 'metadata', path: 'metadata', kind: 'object' },
  { name: 'serviceTier', path: 'service_tier', kind: 'string' },
  { name: 'modalities', path: 'modalities', kind: 'strings' },
  { name: 'promptCacheKey', path: 'prompt_cache_key', kind: 'string' },
];

/** Settings that encode-request writes by itself, because more than one field or rule is involved. */
export const handled: ReadonlySet<string> = new Set([
  'maxOutput',
  'stop',
  'responseFormat',
  'user',
  'serviceTier',
  'reasoning',
]);

/** Service tiers that this format has words for; another format's word is not sent. */
export const serviceTiers: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
]);

/** Most stop sequences. */
export const mostStops = 4;

/** The client's path of a setting. */
export function settingPath(name: keyof ChatSettings): string {
  if (name === 'reasoning') return 'reasoning_effort';
  if (name === 'maxOutput') return 'max_completion_tokens';
  return rows.find((row) => row.name === name)?.path ?? name;
}
