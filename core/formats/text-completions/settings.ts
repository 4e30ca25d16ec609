/** Settings of text completions: the path, type and range of each. */
import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { completionRows } from '../_openai/settings.ts';

/**
 * All settings that the neutral model has. The official API's default for `max_tokens` is 16. It is not applied to other formats, because a chat
 * answer cut after 16 tokens is of no use.
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
