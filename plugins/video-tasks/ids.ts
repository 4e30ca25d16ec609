import { randomBytes } from 'node:crypto';

/** Formats whose clients look for a certain beginning. The others get what most gateways use. */
const prefixes: Readonly<Record<string, string>> = { videos: 'video_', ark: 'cgt-' };

/** Returns a new task's id, in the style of the format in which it was made. 192 bits: nobody guesses one. */
export function newTaskId(format: string): string {
  return (prefixes[format] ?? 'task_') + randomBytes(24).toString('hex');
}
