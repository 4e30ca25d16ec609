/** Settings of chat completions: the path, type and range of each. */
import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { readResponseFormat } from './response-format.ts';
import { chatRows, completionRows } from '../_openai/settings.ts';
import { setOf } from '../_shared/fields.ts';
import { reasoningFields } from './reasoning/index.ts';

/**
 * All settings that the neutral model has, except reasoning, whose several spellings are read in `reasoning/`. Of two rows with one name,
 * the later one takes precedence in decoding and the first one is encoded: `max_completion_tokens` takes precedence over `max_tokens`, as
 * in the specification.
 */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_tokens', kind: 'integer', min: 1 },
  { name: 'maxOutput', path: 'max_completion_tokens', kind: 'integer', min: 1 },
  ...completionRows,
  { name: 'topK', path: 'top_k', kind: 'number' },
  { name: 'choices', path: 'n', kind: 'integer', min: 1 },
  { name: 'logprobs', path: 'logprobs', kind: 'boolean' },
  { name: 'responseFormat', path: 'response_format', kind: 'object', read: readResponseFormat },
  { name: 'verbosity', path: 'verbosity', kind: 'string' },
  { name: 'modalities', path: 'modalities', kind: 'strings' },
  ...chatRows,
];

/** Settings that the encoder writes with its own code, because more than one field or rule is involved. */
export const handled = setOf('maxOutput stop responseFormat user serviceTier reasoning');

/** The client's path of a setting. */
export const settingPath = pathsOf(rows, {
  reasoning: 'reasoning_effort',
  maxOutput: 'max_completion_tokens',
});

/** The members in which a setting stands, and the tools. */
export const places = settingPlaces(rows, {
  reasoning: reasoningFields,
  toolChoice: ['tool_choice', 'function_call'],
  tools: ['tools', 'functions'],
});
