/** Checks the data folder: permissions and free space. */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { findingsOf, shownBytes, type Check } from '../finding.ts';

const { ok, warning, error } = findingsOf('disk');

/** Free bytes below which writes are about to fail. */
const nearlyNothing = 100 * 1024 * 1024;

/** The data folder: writable, with free space. */
export const disk: Check = {
  name: 'disk',
  look({ config, minFree }) {
    const folder = resolve(config.root, config.settings.data);
    let there = folder;
    while (!existsSync(there)) there = dirname(there);
    try {
      accessSync(there, constants.W_OK);
    } catch {
      return [
        error(
          `The data folder ${folder} is not writable.`,
          `Make the user of the gateway the owner: chown USER ${there}`,
        ),
      ];
    }
    const { bavail, bsize } = statfsSync(there);
    const free = bavail * bsize;
    const message = `${shownBytes(free)} of disk space are free for ${folder}.`;
    const fix = 'Free space, or move the data folder ("data", SLUICE_DATA) to a larger disk.';
    if (free < Math.min(nearlyNothing, minFree)) return [error(message, fix)];
    return [free < minFree ? warning(message, fix) : ok(message)];
  },
};
