/** Limits of a log line: length of a text and of a name, members of a list or object, depth, and length of the whole line. */
const longestText = 4_096;
const longestName = 200;
const mostMembers = 100;
const deepest = 6;
const mostCharacters = 16_384;

/** Length of a member besides its text. */
const perMember = 8;

const secretFields = new Set([
  'authorization',
  'cookie',
  'key',
  'keys',
  'apiKey',
  'api_key',
  'password',
  'secret',
  'token',
]);

/** Characters that a line still has room for. */
interface Room {
  left: number;
}

/** Data of a log line. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the fields of a line, safe to log: fields whose names say that they hold secrets are replaced, and long, deep or numerous
 * values are cut, so that neither the line nor its cost grows with what a client sends. Returns the same object if nothing changes.
 */
export function shownFields(fields: Fields): Record<string, unknown> {
  return shownObject(fields, { left: mostCharacters }, 0);
}

/** Returns a text for a line. A long text is cut, and ends with its length. */
export function shownText(text: string, most = longestText): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}… (${text.length} characters)`;
}

function shownObject(object: Fields, room: Room, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  let count = 0;
  for (const name in object) {
    const value = object[name];
    if (value === undefined) continue;
    if (count === mostMembers || room.left <= 0) {
      copy ??= beginning(object, count);
      copy['…'] = 'and more';
      return copy;
    }
    room.left -= name.length + perMember;
    const shown = secretFields.has(name) ? '…' : shownValue(value, room, depth);
    if (copy === undefined && (shown !== value || name.length > longestName)) copy = beginning(object, count);
    if (copy !== undefined) copy[shownText(name, longestName)] = shown;
    count += 1;
  }
  return copy ?? object;
}

/** Returns a copy of the first members that have a value. */
function beginning(object: Fields, count: number): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  let left = count;
  for (const name in object) {
    if (left === 0) break;
    if (object[name] === undefined) continue;
    copy[name] = object[name];
    left -= 1;
  }
  return copy;
}

function shownList(list: readonly unknown[], room: Room, depth: number): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < list.length; index += 1) {
    if (index === mostMembers || room.left <= 0) {
      copy ??= list.slice(0, index);
      copy.push(`… and ${list.length - index} more`);
      return copy;
    }
    room.left -= perMember;
    const shown = shownValue(list[index], room, depth);
    if (copy === undefined && shown !== list[index]) copy = list.slice(0, index);
    copy?.push(shown);
  }
  return copy ?? list;
}

function shownValue(value: unknown, room: Room, depth: number): unknown {
  if (typeof value === 'string') {
    const shown = shownText(value, Math.min(longestText, Math.max(0, room.left)));
    room.left -= shown.length;
    return shown;
  }
  if (typeof value === 'bigint') return shownText(value.toString());
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= deepest) return '…';
  if (Array.isArray(value)) return shownList(value, room, depth + 1);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (value instanceof Error) return shownObject(errorFields(value), room, depth + 1);
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return shownValue(value.toJSON(), room, depth + 1);
  return shownObject(value as Fields, room, depth + 1);
}

function errorFields(error: Error): Fields {
  const { code } = error as { code?: unknown };
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : undefined;
  return { name: error.name, code, message: error.message, cause, stack: error.stack };
}
