/** Decodes and encodes the `usage` object of text completions, and reads it from pass-through bytes. */
import { isObject } from '../../model/json.ts';
import { tapping } from '../_shared/usage.ts';
import { completionUsage, usageReader } from '../_openai/usage.ts';
import { formatName } from './wire.ts';

/** Token counts in the neutral meaning. */
export const readUsage = usageReader(formatName, 'prompt_tokens', 'completion_tokens');

/** Returns the usage object for a client, with non-empty details. */
export const writeUsage = completionUsage(formatName, false);

/** Every figure of this format is cumulative, so nothing has to be remembered. */
export const usageTap = tapping('"usage"', ({ usage }) => (isObject(usage) ? readUsage(usage) : undefined));
