import { setOf } from '../_shared/fields.ts';

const official = setOf('stop length tool_calls content_filter function_call');

/** True for the words that clients of this format know. */
export function isOfficialFinish(word: string): boolean {
  return official.has(word);
}
