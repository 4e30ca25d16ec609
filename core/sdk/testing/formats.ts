/** The formats of this installation. */
import { join } from 'node:path';
import { discover } from '../../config/discover.ts';
import { home } from '../../config/installation/home.ts';
import type { Format } from '../format.ts';

let loaded: Promise<readonly Format[]> | undefined;

/** Returns all formats of this installation, loaded once. */
export function allFormats(): Promise<readonly Format[]> {
  return (loaded ??= discover(join(home, 'core', 'formats'), 'folders').then(({ found }) =>
    found.map(({ value }) => value as Format),
  ));
}

/** Returns the format with this name. Throws when there is none. */
export async function formatNamed(name: string): Promise<Format> {
  const found = (await allFormats()).find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no format "${name}".`);
  return found;
}
