import type { ChatSettings } from '../../model/chat.ts';
import type { SettingRow } from '../_shared/settings.ts';

/**
 * Every setting of this format that the neutral model has a word for. A missing `max_tokens` means 16 to the official API; nothing is sent
 * for it elsewhere, because nothing is invented: a chat model that was cut after 16 tokens would answer no one.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_tokens', kind: 'integer', min: 0 },
  { name: 'temperature', path: 'temperature', kind: 'number', min: 0, max: 2 },
  { name: 'topP', path: 'top_p', kind: 'number', min: 0, max: 1 },
  { name: 'stop', path: 'stop', kind: 'strings' },
  { name: 'choices', path: 'n', kind: 'integer', min: 1, max: 128 },
  { name: 'seed', path: 'seed', kind: 'integer' },
  { name: 'frequencyPenalty', path: 'frequency_penalty', kind: 'number', min: -2, max: 2 },
  { name: 'presencePenalty', path: 'presence_penalty', kind: 'number', min: -2, max: 2 },
  { name: 'user', path: 'user', kind: 'string' },
];

/** Most stop sequences. */
export const mostStops = 4;

/** The client's path of a setting. */
export function settingPath(name: keyof ChatSettings): string {
  return rows.find((row) => row.name === name)?.path ?? name;
}
