import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';

/**
 * Names of files that uploads were written to. Each has one for a moment, until it is taken away: tests beside this one may just be making
 * one, so that whoever expects none asks until there is none.
 */
export function uploadNames(): readonly string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('sluice-upload-'));
}
