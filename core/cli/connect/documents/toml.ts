import { isDeepStrictEqual } from 'node:util';
import { parse, stringify } from 'smol-toml';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { valueAt, type Edit, type Syntax } from './document.ts';

/**
 * TOML, edited line by line because its library keeps no comments: members at the top, and whole tables. The result is parsed and must have the
 * edited values and no other change.
 */
export const toml: Syntax = {
  apply(text, edits) {
    const before = parsed(text);
    let edited = text;
    for (const { path, value } of edits)
      edited = path.length === 1 ? withMember(edited, path[0] ?? '', value) : withTable(edited, path, value);
    if (!hasValues(edited, edits.reduce(merged, before)))
      throw new Error('it is written in a way that cannot be edited safely');
    return edited;
  },
  read: (text, path) => valueAt(parsed(text), path),
};

function parsed(text: string): JsonObject {
  try {
    return structuredClone(parse(text)) as JsonObject;
  } catch (error) {
    throw new Error(`it is not valid TOML: ${error instanceof Error ? error.message.split('\n')[0] : ''}`, {
      cause: error,
    });
  }
}

function hasValues(text: string, values: JsonObject): boolean {
  try {
    return isDeepStrictEqual(parsed(text), values);
  } catch {
    return false;
  }
}

/** Returns the values with an edit made. */
function merged(values: JsonObject, { path: [name = '', ...rest], value }: Edit): JsonObject {
  const { [name]: old, ...others } = values;
  if (rest.length === 0) return value === undefined ? others : { ...values, [name]: value };
  const inner = merged(isTable(old) ? old : {}, { path: rest, ...(value === undefined ? {} : { value }) });
  return Object.keys(inner).length === 0 && !isTable(old) ? others : { ...values, [name]: inner };
}

function isTable(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const header = /^\s*\[/;

/** Sets or removes a member in front of the first table. */
function withMember(text: string, name: string, value: JsonValue | undefined): string {
  const lines = linesOf(text);
  const end = lines.findIndex((line) => header.test(line));
  const head = end === -1 ? lines.length : end;
  const at = lines.slice(0, head).findIndex((line) => new RegExp(`^\\s*${name}\\s*=`).test(line));
  const line = value === undefined ? [] : [stringify({ [name]: value }).trimEnd()];
  if (at !== -1) lines.splice(at, 1, ...line);
  else {
    // Behind the last line that says something, so that a comment above the first table stays there.
    const last = lines.slice(0, head).findLastIndex((one) => /^\s*[^#\s]/.test(one));
    lines.splice(last + 1, 0, ...line);
  }
  return textOf(lines);
}

/** Replaces, appends or removes a whole table. */
function withTable(text: string, path: readonly string[], value: JsonValue | undefined): string {
  const lines = linesOf(text);
  const title = `[${path.join('.')}]`;
  const start = lines.findIndex((line) => line.replaceAll(/\s|#.*$/g, '') === title);
  const table = value === undefined ? [] : [title, ...linesOf(stringify(value as JsonObject))];
  if (start === -1)
    return value === undefined
      ? text
      : textOf([...lines, ...(lines.length > 0 && lines.at(-1) !== '' ? [''] : []), ...table]);
  const next = lines.findIndex((line, index) => index > start && header.test(line));
  let end = next === -1 ? lines.length : next;
  // Empty lines and comments above the next table belong to that one.
  while (end > start + 1 && /^\s*(#.*)?$/.test(lines[end - 1] ?? '')) end -= 1;
  lines.splice(start, end - start, ...table);
  return textOf(lines);
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function textOf(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
