import { extrasOf } from '../_shared/extra.ts';

/** The name of this format, in `extra`, proofs, usage and losses. */
export const formatName = 'chat-completions';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** Most blocks, tool calls or choices that one reply may hold. */
export const mostBlocks = 1024;
