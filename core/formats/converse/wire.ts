/** Name of the Converse format, and its functions to keep unknown fields. */
import { extrasOf } from '../_shared/extra.ts';

/** The name of this format: the key of its `extra` entries and the `format` of its proofs. */
export const formatName = 'converse';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);
