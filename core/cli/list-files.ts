/** Comma-separated options, and text and JSON files, of commands. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Returns the items of a comma-separated option that may be repeated; undefined when it was not given. */
export function listOf(texts: readonly string[] | undefined): readonly string[] | undefined {
  return texts
    ?.flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '');
}

/** Reads a text file. Throws an Error that names the file. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}.`, {
      cause: error,
    });
  }
}

/** Reads and parses a JSON file. Throws an Error that names the file. */
export function readList(file: string): unknown {
  const text = readText(file);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`${file} is not valid JSON: ${error instanceof Error ? error.message : String(error)}.`, {
      cause: error,
    });
  }
}

/** Writes a file. Throws when the file exists and `force` is false. */
export function save(text: string, out: string, force: boolean): void {
  if (existsSync(out) && !force) throw new Error(`${out} exists already. To replace it add --force.`);
  writeFileSync(out, text);
}
