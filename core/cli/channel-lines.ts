import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { home } from '../config/installation/home.ts';

/** A file of the channels folder, without its ending: how long it is, and which helpers of the folder it takes. */
interface Source {
  readonly lines: number;
  readonly helpers: readonly string[];
}

/**
 * How many lines each kind of channel has, as a table in Markdown: those of its own, and those of the helpers that no other kind takes, which
 * are its own in other files. A kind in a folder is counted with all of its files.
 */
export function channelLines(root = home): string {
  const folder = join(root, 'channels');
  const sources = new Map<string, Source>();
  for (const entry of readdirSync(folder)) {
    const [, name] = /^([a-z_][\w-]*?)(?:\.[jt]s)?$/.exec(entry) ?? [];
    if (name !== undefined) sources.set(name, sourceOf(folder, entry));
  }
  const takers = new Map<string, Set<string>>();
  const kinds = [...sources.keys()].filter((name) => !name.startsWith('_')).toSorted();
  for (const kind of kinds)
    for (const helper of helpersOf(kind, sources)) {
      const some = takers.get(helper) ?? new Set();
      takers.set(helper, some.add(kind));
    }
  const rows = kinds.map((kind) => {
    const own = helpersOf(kind, sources).filter((helper) => takers.get(helper)?.size === 1);
    const lines = own.reduce((sum, helper) => sum + (sources.get(helper)?.lines ?? 0), 0);
    return `| \`${kind}\` | ${sources.get(kind)?.lines ?? 0} | ${lines} | ${own.join(', ')} |`;
  });
  return ['| channel | lines | of helpers of its own | these |', '| --- | --- | --- | --- |', ...rows].join(
    '\n',
  );
}

function sourceOf(folder: string, entry: string): Source {
  const path = join(folder, entry);
  const files = statSync(path).isDirectory()
    ? readdirSync(path)
        .filter((file) => /\.[jt]s$/.test(file))
        .map((file) => join(path, file))
    : [path];
  const text = files.map((file) => readFileSync(file, 'utf8')).join('');
  return {
    lines: text.split('\n').length - 1,
    helpers: [...text.matchAll(/from '\.\.?\/(_[a-z0-9-]+)\.[jt]s'/g)].flatMap(([, name]) => name ?? []),
  };
}

/** The helpers of a file, and theirs. */
function helpersOf(name: string, sources: ReadonlyMap<string, Source>): readonly string[] {
  const found = new Set<string>();
  const add = (one: string): void => {
    for (const helper of sources.get(one)?.helpers ?? []) {
      if (found.has(helper)) continue;
      found.add(helper);
      add(helper);
    }
  };
  add(name);
  return [...found].toSorted();
}
