import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

/** The browser that the system brings along; undefined when there is none. */
const program = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

/** Why tests are skipped, for their title; undefined when they can run. Throws where the browser is required. */
export function withoutChromium(): string | undefined {
  if (program !== undefined) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('chromium'))
    throw new Error('Chromium is required by SLUICE_TEST_REQUIRE, and it is not on the PATH.');
  return 'skipped: no chromium';
}

/** Starts a browser without a window. Close it in `afterAll`. */
export function startChromium(): Promise<Browser> {
  if (program === undefined) throw new Error('There is no chromium on the PATH.');
  // There is no graphics card: without the search for one the browser takes an eighth less CPU (measured in November 2026).
  return chromium.launch({
    executablePath: program,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
}
