import { entryOf } from '../_shared/extra.ts';
import { formatName } from './wire.ts';

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export const own = entryOf(formatName);
