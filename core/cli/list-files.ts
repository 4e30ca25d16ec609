import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** The words of an option that takes a list with commas, and may stand more than once; undefined when it was not given. */
export function listOf(texts: readonly string[] | undefined): readonly string[] | undefined {
  return texts
    ?.flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '');
}

/** The text of a file that a command names. Throws an Error that names it. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`, {
      cause: error,
    });
  }
}

/** A list in JSON. Throws an Error that names the file. */
export function readList(file: string): unknown {
  const text = readText(file);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`${file} is not JSON: ${error instanceof Error ? error.message : String(error)}.`, {
      cause: error,
    });
  }
}

/** Writes a file; one that exists only when it may be replaced. */
export function save(text: string, out: string, force: boolean): void {
  if (existsSync(out) && !force) throw new Error(`${out} exists. Replace it with --force.`);
  writeFileSync(out, text);
}
