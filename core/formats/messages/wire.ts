import { setOf } from '../_shared/extra.ts';

/** The name of this format: the key of its `extra` entries and the `format` of its proofs. */
export const name = 'messages';

/** Image types that the format takes. */
export const imageTypes = setOf('image/jpeg image/png image/gif image/webp');
