/** Folders and version of this installation. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of `core/`, `plugins/` and `channels/` of this installation: the repository, or the compiled folder of the package. */
export const home = fileURLToPath(new URL('../../..', import.meta.url));

/** The folder with package.json: of the repository, or of the installed package. */
export const packageFolder = existsSync(`${home}package.json`) ? home : `${dirname(home)}/`;

const manifest = JSON.parse(readFileSync(`${packageFolder}package.json`, 'utf8')) as {
  readonly version: string;
};

/**
 * The version of this gateway.
 *
 * @example
 * const headers = { 'user-agent': `sluice/${version}` };
 */
export const version: string = manifest.version;
