import { fileURLToPath } from 'node:url';

/** Variable with the URL of the hook that makes Node load the bundle of this run: see bundle.ts. Set for the workers of the test runner. */
export const bundleVariable = 'SLUICE_TEST_BUNDLE';

const hook = process.env[bundleVariable];

/** Arguments with which Node runs `sluice` from its sources. */
export const sluiceFromSources: readonly string[] = [
  fileURLToPath(new URL('../../core/cli/sluice.js', import.meta.url)),
];

/** Arguments with which Node runs `sluice`, from a bundle where this run has one. The arguments of the command follow. */
export const sluiceProgram: readonly string[] = [
  ...(hook === undefined ? [] : ['--import', hook]),
  ...sluiceFromSources,
];
