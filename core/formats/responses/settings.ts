import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { readResponseFormat } from './response-format.ts';
import { setOf } from '../_shared/fields.ts';
import { chatRows, samplingRows, serviceTiers } from '../_openai/settings.ts';

/**
 * Every setting of this format that the neutral model has a word for. Of two rows with one name the later one wins on reading and the
 * first one is written. Reasoning, and log probabilities (a word of `include`), are read and written by files of their own.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_output_tokens', kind: 'integer', min: 1 },
  ...samplingRows,
  { name: 'responseFormat', path: 'text.format', kind: 'object', read: readResponseFormat },
  { name: 'verbosity', path: 'text.verbosity', kind: 'string' },
  ...chatRows,
];

/** Settings that the encoder writes by itself, because more than one field or rule is involved. */
export const handled = setOf('responseFormat verbosity user serviceTier reasoning logprobs choices');

/** Service tiers that this format has words for; another format's word is not sent. */
export const tiers: ReadonlySet<string> = new Set([...serviceTiers, 'ultrafast']);

/** The client's path of a setting. */
export const settingPath = pathsOf(rows, { logprobs: 'include' });

/** The members in which a setting stands, and the tools. */
export const places = settingPlaces(rows, {
  reasoning: ['reasoning'],
  logprobs: ['include'],
  toolChoice: ['tool_choice'],
  tools: ['tools'],
});
