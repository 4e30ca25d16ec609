import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { dirname, join, relative, resolve } from 'node:path';
import { frugalCompiler } from '../support/compiler.ts';
import { home, read } from './source.ts';

/*
 * The public surface as the compiler declares it: every name of `sluice`, `sluice/channel-kit` and `sluice/testing`, and every type that one needs to understand
 * them, a line each. It is recorded in surface.txt, so that no change of it goes unnoticed. `npm run surface` records it anew.
 */

/** Path of the recorded surface. */
export const recordFile = join(home, 'test/house/surface.txt');

const entryPoints: Readonly<Record<string, string>> = {
  sluice: 'core/sdk/index',
  'sluice/channel-kit': 'core/sdk/channel-kit',
  'sluice/testing': 'core/sdk/testing/index',
};

/** One name of the surface. */
export interface Declared {
  /** `sluice Call`, or `… Call` for what stands behind a name. */
  readonly name: string;
  /** Its declaration on one line, without comments. */
  readonly text: string;
  /** The comment above it. */
  readonly comment: string;
  /** True for a name that authors import. */
  readonly isExported: boolean;
}

/** The surface as it is now. It takes the compiler some seconds. */
export function surface(): readonly Declared[] {
  mkdirSync(join(home, 'data/tests'), { recursive: true });
  const folder = mkdtempSync(join(home, 'data/tests/surface-'));
  try {
    const project = join(folder, 'tsconfig.json');
    writeFileSync(
      project,
      JSON.stringify({
        extends: join(home, 'core/packaging/tsconfig.json'),
        compilerOptions: {
          rootDir: home,
          outDir: folder,
          declaration: true,
          sourceMap: false,
          emitDeclarationOnly: true,
        },
        files: Object.values(entryPoints).map((path) => join(home, `${path}.ts`)),
        include: [],
      }),
    );
    const compiler = join(home, 'node_modules/typescript/bin/tsc');
    // `npm run types` has checked them.
    const options = ['--noCheck', ...frugalCompiler.options];
    execFileSync(process.execPath, [compiler, '-p', project, ...options], {
      stdio: 'inherit',
      env: { ...process.env, ...frugalCompiler.env },
    });
    return declaredIn(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** True for files whose declarations are recorded: those that authors see, not internals that tests import. */
function isPublic(path: string): boolean {
  return /^core\/(?:model|sdk)\//.test(path) && !path.startsWith('core/sdk/define.');
}

/** A file of declarations. */
interface Page {
  readonly path: string;
  readonly own: ReadonlyMap<string, { readonly text: string; readonly comment: string }>;
  /** Names that come from elsewhere: the file, and the name there. */
  readonly from: ReadonlyMap<string, readonly [path: string, name: string]>;
}

function declaredIn(folder: string): readonly Declared[] {
  const pages = new Map<string, Page>();
  const page = (path: string): Page => {
    const known = pages.get(path);
    if (known !== undefined) return known;
    const made = pageOf(path);
    pages.set(path, made);
    return made;
  };
  const found = new Map<string, Declared>();
  const visit = (path: string, name: string, entry: string | undefined): void => {
    const own = page(path).own.get(name);
    if (own === undefined) {
      const elsewhere = page(path).from.get(name);
      if (elsewhere !== undefined) visit(elsewhere[0], elsewhere[1], entry);
      return;
    }
    if (entry === undefined && !isPublic(relative(folder, path))) return;
    const key = `${path} ${name}`;
    const known = found.get(key);
    if (known?.isExported === true || (known !== undefined && entry === undefined)) return;
    // What a schema allows is told in the settings, not here.
    if (entry === undefined && /^(?:declare )?const /.test(own.text)) return;
    found.set(key, { ...own, name: `${entry ?? '…'} ${name}`, isExported: entry !== undefined });
    for (const word of new Set(own.text.match(/[A-Za-z_$][\w$]*/g)))
      if (word !== name) visit(path, word, undefined);
  };
  for (const [entry, path] of Object.entries(entryPoints)) {
    const file = join(folder, `${path}.d.ts`);
    for (const name of page(file).from.keys()) visit(file, name, entry);
  }
  const order = (one: Declared): string => `${one.isExported ? 0 : 1}${one.name} ${one.text}`;
  return [...found.values()].toSorted((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** Reads one file of declarations as the compiler writes them. */
function pageOf(path: string): Page {
  const source = readFileSync(path, 'utf8');
  const own = new Map<string, { text: string; comment: string }>();
  const from = new Map<string, readonly [string, string]>();
  for (const [, list = '', specifier = ''] of source.matchAll(
    /^(?:import|export) (?:type )?\{([^}]*)\} from ['"](\.[^'"]+)['"];/gm,
  )) {
    const file = resolve(dirname(path), specifier.replace(/\.[jt]s$/, '.d.ts'));
    for (const one of list.split(',')) {
      const [there = '', here = there] = one
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (there !== '') from.set(here, [file, there]);
    }
  }
  const declaration =
    /^(?:export )?(?:declare )?(?:abstract )?(interface|type|class|const|let|function) ([\w$]+)/gm;
  for (const match of source.matchAll(declaration)) {
    const [, kind = '', name = ''] = match;
    const text = source.slice(
      match.index,
      endOf(source, match.index, kind === 'interface' || kind === 'class'),
    );
    const above = source.slice(0, match.index);
    const comment = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(above)?.[0] ?? '';
    const plain = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/\s+/g, ' ');
    const before = own.get(name);
    own.set(name, {
      text: `${before === undefined ? '' : `${before.text} `}${plain.replace(/^export /, '').trim()}`,
      comment: before?.comment ?? comment,
    });
  }
  return { path, own, from };
}

/** Returns the end of a declaration: its last brace, or a semicolon outside of all braces. */
function endOf(source: string, start: number, isBlock: boolean): number {
  let depth = 0;
  for (let at = start; at < source.length; at += 1) {
    const char = source[at] ?? '';
    if (source.startsWith('/*', at)) {
      at = source.indexOf('*/', at) + 1;
    } else if ('{([<'.includes(char)) depth += 1;
    else if ('})]'.includes(char) || (char === '>' && source[at - 1] !== '=')) {
      depth -= 1;
      if (isBlock && depth === 0 && char === '}') return at + 1;
    } else if (char === ';' && depth === 0) return at + 1;
  }
  return source.length;
}

/** The surface as it is recorded, a line for each name. */
export function linesOf(declared: readonly Declared[]): readonly string[] {
  return declared.map(({ name, text }) => `${name}: ${text}`);
}

/** Returns the recorded lines, and the changelog for authors at that time. */
export function recorded(): { readonly changelog: string; readonly lines: readonly string[] } {
  const [changelog = '', ...lines] = readFileSync(recordFile, 'utf8').trimEnd().split('\n');
  return { changelog, lines };
}

/** A short name for what the changelog says to authors of plugins. */
export function changelogNow(): string {
  const text = read('CHANGELOG.md');
  const section = /### For plugin authors\n([\s\S]*?)(?=\n##)/.exec(text)?.[1] ?? '';
  return `changelog ${createHash('sha256').update(section).digest('hex').slice(0, 16)}`;
}
