import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { switchFile, type SourceFile } from './mutants.ts';

/** Top-level entries that a copy does without, or links to. */
const notCopied = new Set(['.git', 'node_modules', 'data', 'coverage', 'dist']);

/** File in which the instrumented code records the mutants that it reaches, see {@link Tree.record}. */
const reachedFile = 'mutants-reached.txt';

/**
 * Copy of the repository in which the instrumented code stands. One mutant at a time is active in it, for every process that is started from
 * it: processes that run at the same time with different mutants need trees of their own.
 */
export class Tree {
  readonly root: string;

  constructor(home: string, files: readonly SourceFile[]) {
    this.root = mkdtempSync(join(tmpdir(), 'sluice-mutate-'));
    const skipped = new Set([...notCopied].map((name) => join(home, name)));
    cpSync(home, this.root, { recursive: true, filter: (path) => !skipped.has(path) });
    symlinkSync(join(home, 'node_modules'), join(this.root, 'node_modules'));
    for (const { path, text } of files) writeFileSync(join(this.root, path), text);
    this.activate(undefined);
    process.once('exit', () => this.close());
  }

  /** Path of the file that lists the mutants reached, one id a line, since the last {@link record}. */
  get reached(): string {
    return join(this.root, reachedFile);
  }

  /** Makes a mutant active in all processes that start from now on; undefined for the code as it is. */
  activate(mutant: string | undefined): void {
    this.#switch(`const active = ${JSON.stringify(mutant ?? '')};
export const isActive = (id) => id === active;
export const cover = () => {};
`);
  }

  /** Makes processes that start from now on write down which mutants they reach. They do so at once: tests kill processes. */
  record(): void {
    if (existsSync(this.reached)) rmSync(this.reached);
    this.#switch(`import { appendFileSync } from 'node:fs';
const seen = new Set();
export const isActive = () => false;
export const cover = (...ids) => {
  const fresh = ids.filter((id) => !seen.has(id));
  if (fresh.length === 0) return;
  for (const id of fresh) seen.add(id);
  appendFileSync(${JSON.stringify(this.reached)}, fresh.join('\\n') + '\\n');
};
`);
  }

  #switch(text: string): void {
    writeFileSync(join(this.root, switchFile), text);
  }

  close(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
