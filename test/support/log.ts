import { createLog, type Log } from '../../core/log.ts';

/** Lines of a log, parsed. */
export type Lines = Record<string, unknown>[];

/** A log that keeps its lines for the test. */
export function keptLog(): { readonly log: Log; readonly lines: Lines } {
  const lines: Lines = [];
  const log = createLog('debug', { write: (line) => void lines.push(JSON.parse(line) as Lines[number]) });
  return { log, lines };
}
