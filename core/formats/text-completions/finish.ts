import type { FinishReason } from '../../model/event.ts';
import { writeFinish as familyWord } from '../_openai/finish.ts';
import { setOf } from '../_shared/fields.ts';

const official = setOf('stop length content_filter');

/** The official word for a finish reason; the provider's own where it is one of the three. There are no calls here. */
export function writeFinish(reason: FinishReason, word = ''): string {
  if (official.has(word)) return word;
  return reason === 'tool-calls' ? 'stop' : familyWord(reason);
}
