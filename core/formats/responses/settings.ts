/** Settings of Responses: the path, type and range of each. */
import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { readResponseFormat } from './response-format.ts';
import { setOf } from '../_shared/fields.ts';
import { chatRows, samplingRows, serviceTiers } from '../_openai/settings.ts';

/**
 * All settings that the neutral model has, except reasoning and log probabilities (a value of `include`), which other files read and write. Of two
 * rows with one name the later one wins on reading and the first one is written.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_output_tokens', kind: 'integer', min: 1 },
  ...samplingRows,
  { name: 'responseFormat', path: 'text.format', kind: 'object', read: readResponseFormat },
  { name: 'verbosity', path: 'text.verbosity', kind: 'string' },
  ...chatRows,
];

/** Settings that the encoder writes with its own code, because more than one field or rule is involved. */
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
