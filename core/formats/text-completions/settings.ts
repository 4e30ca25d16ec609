import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { completionRows } from '../_openai/settings.ts';

/**
 * Every setting of this format that the neutral model has a word for. A missing `max_tokens` means 16 to the official API; nothing is sent
 * for it elsewhere, because nothing is invented: a chat model that was cut after 16 tokens would answer no one.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_tokens', kind: 'integer', min: 0 },
  ...completionRows,
  { name: 'choices', path: 'n', kind: 'integer', min: 1, max: 128 },
  { name: 'user', path: 'user', kind: 'string' },
];

/** The client's path of a setting. */
export const settingPath = pathsOf(rows);

/** The members in which a setting stands. */
export const places = settingPlaces(rows, {});
