import { entryOf, Leftovers } from '../_shared/extra.ts';
import { formatName } from './wire.ts';

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export const own = entryOf(formatName);

/** What is left of a piece that the neutral model has no word for. */
export const leftovers = (): Leftovers => new Leftovers(formatName);
