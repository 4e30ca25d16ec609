/** Describes why a file of an operator does not load, with the position of the error and without any source text. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { home } from './home.ts';
import { failedImportOf } from './resolve.ts';

/** Position in a file. Lines and columns begin with 1. */
interface Position {
  readonly file: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** A file of an operator's that does not load. The message is the reason, without any source text, because that may hold keys. */
export class LoadError extends Error {
  /** The file, with line and column as far as they are known: `gateway.config.ts:3:7`. */
  readonly location: string;

  constructor(reason: string, file: string, position: Position | undefined, cause: unknown) {
    const isHere = position === undefined || position.file === file;
    const isNamed = position !== undefined && position.line === undefined && reason.includes(position.file);
    super(isHere || isNamed ? reason : `${reason} (in ${textOf(position)})`, { cause });
    this.name = 'LoadError';
    this.location = isHere && position !== undefined ? textOf(position) : file;
  }
}

/** Describes why a file does not load. `modules` are the URLs of the files that were found while it was loaded. */
export async function loadErrorOf(
  error: unknown,
  file: string,
  modules: ReadonlySet<string>,
): Promise<LoadError> {
  const reason = withoutSource(error instanceof Error ? error.message : String(error));
  const position =
    headOf(error) ?? importOf(error) ?? frameOf(error) ?? (await culprit(error, modules)) ?? undefined;
  return new LoadError(reason, file, position, error);
}

function textOf({ file, line, column }: Position): string {
  return [file, line, column].filter((part) => part !== undefined).join(':');
}

/** Removes quoted source text: V8 shows the beginning of invalid JSON, and the compiler of TypeScript shows literals. */
function withoutSource(reason: string): string {
  return reason
    .replace(/, (?:\.\.\.)?"[^]*"(?:\.\.\.)? is not valid JSON$/, ' in JSON')
    .replace(/\b((?:string|numeric|template|regexp|bigint) literal) \([^]*\)/g, '$1');
}

/** Returns the position that Node writes before the stack of a syntax error: `FILE:LINE`, the line of source, and `^` below the wrong part. */
function headOf(error: unknown): Position | undefined {
  const stack = error instanceof SyntaxError ? (error.stack ?? '') : '';
  const [, path = '', line = '', source = ''] = /^((?:file:\/\/)?\/[^\n]*?):(\d+)\n([^]*)/.exec(stack) ?? [];
  if (path === '') return undefined;
  const file = pathOf(path);
  const [snippet = ''] = source.split('\n\nSyntaxError', 1);
  const marks = snippet.split('\n').find((text) => /^\s*\^+\s*$/.test(text));
  const column = marks === undefined ? indentOf(file, Number(line)) : marks.indexOf('^') + 1;
  return { file, line: Number(line), column };
}

/** Returns the column where a line begins: code of several lines is marked without one. */
function indentOf(file: string, line: number): number | undefined {
  const text = linesOf(file)[line - 1];
  return text === undefined ? undefined : text.search(/\S|$/) + 1;
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** Returns the position of an import that cannot be resolved. */
function importOf(error: unknown): Position | undefined {
  const { specifier, parent } = failedImportOf(error) ?? {};
  if (specifier === undefined || parent?.startsWith('file:') !== true) return undefined;
  const file = fileURLToPath(parent);
  const lines = linesOf(file);
  const quoted = [`'${specifier}'`, `"${specifier}"`];
  const index = lines.findIndex((line) => quoted.some((text) => line.includes(text)));
  if (index < 0) return { file };
  const columns = quoted.map((text) => lines[index]?.indexOf(text) ?? -1).filter((at) => at >= 0);
  return { file, line: index + 1, column: Math.min(...columns) + 1 };
}

/** Returns where an error was thrown: the first line of its stack that is not in `core/`. */
function frameOf(error: unknown): Position | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const frames = stack.matchAll(/^ +at (?:.*\()?((?:file:\/\/)?\/[^\n]*?):(\d+):(\d+)\)?$/gm);
  return [...frames]
    .map(([, path = '', line, column]) => ({
      file: pathOf(path),
      line: Number(line),
      column: Number(column),
    }))
    .find(({ file }) => !file.startsWith(join(home, 'core/')));
}

function pathOf(pathOrUrl: string): string {
  return pathOrUrl.startsWith('file:') ? fileURLToPath(pathOrUrl) : pathOrUrl;
}

/** Returns the position of a syntax error whose file the error does not name: imports each file again, those that were found last first. */
async function culprit(error: unknown, modules: ReadonlySet<string>): Promise<Position | undefined> {
  if (!(error instanceof SyntaxError)) return undefined;
  for (const url of [...modules].toReversed()) {
    if (!url.startsWith('file:')) continue;
    try {
      await import(url);
    } catch (again) {
      if (again instanceof SyntaxError && again.message === error.message) return checked(fileURLToPath(url));
    }
  }
  return undefined;
}

/** Time for Node to check one file, in milliseconds. */
const checkTime = 20_000;

/** Returns the position of a syntax error by `node --check`, which runs nothing, because the error of an import has none. */
function checked(file: string): Position {
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: checkTime });
  const [, line, , marks = ''] =
    /^(?:file:\/\/)?\/[^\n]*?:(\d+)\n([^\n]*)\n(\s*\^+)/m.exec(stderr ?? '') ?? [];
  return line === undefined ? { file } : { file, line: Number(line), column: marks.indexOf('^') + 1 };
}
