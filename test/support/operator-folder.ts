import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** Ignored by git, and inside the repository, so that what tests import there by path, and the compiler, find it. */
const testFolder = fileURLToPath(new URL('../../data/tests/', import.meta.url));

/** A folder as an operator has it, with a config, plugins and channels of their own. It is gone after the test. */
export function operatorFolder(files: Readonly<Record<string, string>> = {}): string {
  mkdirSync(testFolder, { recursive: true });
  const folder = mkdtempSync(join(testFolder, 'operator-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}
