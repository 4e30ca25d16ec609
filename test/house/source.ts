import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder. */
export const home = fileURLToPath(new URL('../..', import.meta.url));

const notOurs = new Set(['node_modules', '.git', 'data', 'coverage', 'dist']);

/** Every file of the repository, as paths from its root. What is installed or written at run time is left out. */
export function everyFile(folder = ''): string[] {
  return readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (notOurs.has(entry.name)) return [];
    return entry.isDirectory() ? everyFile(path) : [path];
  });
}

/** A file's text. */
export function read(path: string): string {
  return readFileSync(join(home, path), 'utf8');
}

/** The page of the dashboard runs in a browser: what it may import and how it is built is its own affair. */
const page = 'plugins/dashboard/web/';

/** The TypeScript files below these folders. */
export function scripts(...folders: string[]): string[] {
  return folders
    .flatMap((folder) => everyFile(folder))
    .filter((path) => path.endsWith('.ts') && !path.startsWith(page));
}

/** Options of {@link blank}. */
export interface Blanking {
  readonly strings: boolean;
}

const beforeRegex =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^\n]|\b(?:return|typeof|case|in|of|yield|await|throw|delete|void|else|do))\s*$/;

/** Results of `blank`: every law looks at the same files. */
const blanked = { code: new Map<string, string>(), strings: new Map<string, string>() };

/** The text with comments turned into spaces, and with `strings` what stands between quotes too. Places stay where they were. */
export function blank(text: string, { strings }: Blanking): string {
  const results = strings ? blanked.strings : blanked.code;
  let result = results.get(text);
  if (result === undefined) results.set(text, (result = blankText(text, { strings })));
  return result;
}

function blankText(text: string, { strings }: Blanking): string {
  let out = '';
  let at = 0;
  const spaces = (length: number): void => {
    out += text.slice(at, at + length).replaceAll(/[^\n]/g, ' ');
    at += length;
  };
  const quoted = (length: number): void => {
    if (strings) spaces(length);
    else {
      out += text.slice(at, at + length);
      at += length;
    }
  };
  // Where a `}` ends the hole of a template, counted in open braces.
  const holes: number[] = [];
  let braces = 0;
  const template = (): void => {
    const [whole] = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y.exec(text.slice(at)) ?? [''];
    quoted(whole.length);
    if (text.startsWith('${', at)) {
      holes.push(braces);
      out += '${';
      at += 2;
    } else {
      out += '`';
      at += 1;
    }
  };
  while (at < text.length) {
    const rest = text.slice(at, at + 2);
    const char = rest[0] ?? '';
    if (rest === '//') spaces((/[^\n]*/.exec(text.slice(at)) ?? [''])[0].length);
    else if (rest === '/*') spaces(text.indexOf('*/', at + 2) + 2 - at);
    else if (char === "'" || char === '"') {
      const [whole = char] = /(['"])(?:(?!\1)[^\\\n]|\\[\s\S])*\1/.exec(text.slice(at)) ?? [];
      out += char;
      at += 1;
      quoted(whole.length - 2);
      out += char;
      at += 1;
    } else if (char === '/' && beforeRegex.test(out.slice(-60))) {
      const [whole = char] = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/.exec(text.slice(at)) ?? [];
      const body = whole.lastIndexOf('/');
      out += '/';
      at += 1;
      quoted(body - 1);
      out += whole.slice(body);
      at += whole.length - body;
    } else if (char === '`') {
      out += char;
      at += 1;
      template();
    } else {
      if (char === '{') braces += 1;
      if (char === '}') {
        if (holes.at(-1) === braces) {
          holes.pop();
          out += char;
          at += 1;
          template();
          continue;
        }
        braces -= 1;
      }
      out += char;
      at += 1;
    }
  }
  return out;
}

/** One import (or re-export) of a file. */
export interface Import {
  /** As it is written. */
  readonly specifier: string;
  /** The file of the repository that it means; undefined for packages. */
  readonly target: string | undefined;
  /** True when Node never sees it, so that it cannot make one file run before another. */
  readonly isType: boolean;
}

const statement = /^\s*(?:import|export)\b([^'"`;(]*\bfrom)?\s*(['"])([^'"\n]+)\2/gm;
const dynamic = /\bimport\s*\(\s*()(['"])([^'"\n]+)\2/g;

/** Everything a file imports. */
export function imports(path: string): Import[] {
  const code = blank(read(path), { strings: false });
  return [...code.matchAll(statement), ...code.matchAll(dynamic)].map(
    ([, clause = '', , specifier = '']) => ({
      specifier,
      target: targetOf(path, specifier),
      isType: /^\s+type\b(?!\s+from\b)/.test(clause),
    }),
  );
}

/** Entry points that authors import by name. */
const entries: Readonly<Record<string, string>> = {
  sluice: 'core/sdk/index.ts',
  'sluice/channel-kit': 'core/sdk/channel-kit.ts',
  'sluice/internal': 'core/sdk/internal.ts',
  'sluice/testing': 'core/sdk/testing/index.ts',
};

function targetOf(path: string, specifier: string): string | undefined {
  const entry = entries[specifier];
  if (entry !== undefined) return entry;
  if (specifier.startsWith('sluice/')) return `${specifier.slice('sluice/'.length)}.ts`;
  return specifier.startsWith('.') ? relative(home, join(home, dirname(path), specifier)) : undefined;
}

/** The number of the line on which this character stands. */
export function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}

/** `path:line: text` for every place in the files where the code (comments and strings left out, unless wished) fits the pattern. */
export function places(
  paths: readonly string[],
  pattern: RegExp,
  options: Blanking = { strings: true },
): string[] {
  return paths.flatMap((path) => {
    const text = read(path);
    const code = blank(text, options);
    return [...code.matchAll(new RegExp(pattern, 'g'))].map(({ index }) => {
      const line = lineOf(text, index);
      return `${path}:${line}: ${text.split('\n')[line - 1]?.trim() ?? ''}`;
    });
  });
}

/** `path:line: text` for each call of a function that is given a list as its arguments: `push(...list)`. */
export function spreads(path: string): string[] {
  const text = read(path);
  const code = blank(text, { strings: true });
  return [...code.matchAll(/[\w\])]\(/g)].flatMap(({ index }) => {
    const { hasSpread, end } = listAt(code, index + 2);
    if (!hasSpread || code.slice(end).trimStart().startsWith('=>')) return [];
    const line = lineOf(text, index);
    return [`${path}:${line}: ${text.split('\n')[line - 1]?.trim() ?? ''}`];
  });
}

/** Returns true in `hasSpread` when the argument list that begins here has a spread argument, and the end of the list. */
function listAt(code: string, start: number): { readonly hasSpread: boolean; readonly end: number } {
  let depth = 1;
  let hasSpread = false;
  let at = start;
  for (; depth > 0 && at < code.length; at += 1) {
    if ('([{'.includes(code[at] ?? '')) depth += 1;
    else if (')]}'.includes(code[at] ?? '')) depth -= 1;
    else if (depth === 1 && /^\.\.\.(?!\w+:)/.test(code.slice(at, at + 60))) hasSpread = true;
  }
  return { hasSpread, end: at };
}
