import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';

const home = resolve(import.meta.dirname, '../..');

/** The file of each channel kind of this repository, by the kind's name: `NAME.ts` or `NAME/index.ts` below channels. */
export const kindFiles: ReadonlyMap<string, string> = new Map(
  globSync(['channels/*.ts', 'channels/*/index.ts'], { cwd: home })
    .map((file) => [/^channels\/(.+?)(?:\/index)?\.ts$/.exec(file)?.[1] ?? file, join(home, file)] as const)
    .filter(([name]) => !name.startsWith('_'))
    .toSorted(([one], [other]) => (one < other ? -1 : 1)),
);

/** The end of an import of a kind's file, as tests write it. */
export const importedAs = (file: string): string => `${file.slice(home.length)}'`;
