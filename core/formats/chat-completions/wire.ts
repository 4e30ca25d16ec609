/** Constants of the chat completions format, and its functions to keep unknown fields. */
import type { JsonObject } from '../../model/json.ts';
import { extrasOf } from '../_shared/extra.ts';

/** The name of this format, in `extra`, proofs, usage and losses. */
export const formatName = 'chat-completions';

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** Delta that opens a choice without content. */
export const roleDelta: JsonObject = { role: 'assistant', content: '', refusal: null };

/** Most blocks, tool calls or choices that one reply may hold. */
export const mostBlocks = 1024;
