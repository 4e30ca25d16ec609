/** Constants of the text completions format, and its functions to keep unknown fields. */
import { extrasOf } from '../_shared/extra.ts';

/** The name of this format, in `extra`, usage and losses. */
export const formatName = 'text-completions';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName, false);

/** Path of requests below the provider's base URL. */
export const completionsPath = '/completions';

/** Most answers that one reply may hold: 128 for each of several prompts. */
export const mostChoices = 4096;
