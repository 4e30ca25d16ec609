import { entryOf } from '../_shared/extra.ts';

/** The name of this format, in `extra`, usage and losses. */
export const formatName = 'text-completions';

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export const own = entryOf(formatName);

/** Where requests go, below the provider's base URL. */
export const completionsPath = '/completions';

/** Most answers that one reply may hold: 128 for each of several prompts. */
export const mostChoices = 4096;
