/** Reads and applies the filters of SCIM (RFC 7644, section 3.4.2.2). */
import type { JsonObject, JsonValue } from 'sluice';
import { withoutUrn } from './attributes.ts';
import { ScimError } from './errors.ts';

/** Limits of a filter: length in characters, number of terms, nesting depth, and characters and steps of a path. */
const limits = { length: 2_000, terms: 50, depth: 8, path: 200, steps: 3 };

/** Comparison operators. */
export type Comparison = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le';

/** A filter. Paths are in lower case. */
export type Filter =
  | { readonly type: 'compare'; readonly path: string; readonly op: Comparison; readonly value: JsonValue }
  | { readonly type: 'present'; readonly path: string }
  | { readonly type: 'and' | 'or'; readonly parts: readonly Filter[] }
  | { readonly type: 'not'; readonly part: Filter }
  | { readonly type: 'element'; readonly path: string; readonly part: Filter };

/** Parses a filter. Throws 400 when it is invalid or too long. */
export function parseFilter(text: string): Filter {
  if (text.length > limits.length) throw invalid(`A filter has at most ${limits.length} characters.`);
  const reader = new Reader(tokensOf(text));
  const filter = reader.either(0);
  reader.end();
  return filter;
}

type Token = { readonly kind: 'word' | 'value' | 'mark'; readonly text: string; readonly value?: JsonValue };

const tokenPattern = /\s*(?:("(?:[^"\\]|\\.)*")|([()[\]])|([A-Za-z$][\w:.$-]*)|(-?\d+(?:\.\d+)?))/y;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  let at = 0;
  while (text.slice(at).trim() !== '') {
    tokenPattern.lastIndex = at;
    const [whole, quoted, mark, word, number] = tokenPattern.exec(text) ?? [];
    if (whole === undefined) throw invalid(`The filter cannot be read at character ${at + 1}.`);
    at += whole.length;
    if (quoted !== undefined) tokens.push({ kind: 'value', text: quoted, value: stringIn(quoted) });
    else if (mark !== undefined) tokens.push({ kind: 'mark', text: mark });
    else if (number !== undefined) tokens.push({ kind: 'value', text: number, value: Number(number) });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word });
  }
  return tokens;
}

function stringIn(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    throw invalid('A text of the filter is not a JSON string.');
  }
}

const literals: ReadonlyMap<string, JsonValue> = new Map<string, JsonValue>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const comparisons: ReadonlySet<string> = new Set(['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le']);

/** Reads tokens by recursive descent: `or` binds less than `and`, and that less than `not`. */
class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #terms = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  either(depth: number): Filter {
    if (depth > limits.depth) throw invalid(`A filter nests at most ${limits.depth} deep.`);
    return this.#joined('or', () => this.#joined('and', () => this.#term(depth)));
  }

  end(): void {
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw invalid(`Unexpected text after the filter: "${rest.text.slice(0, 50)}".`);
  }

  #joined(word: 'and' | 'or', part: () => Filter): Filter {
    const parts = [part()];
    while (this.#takeWord(word)) parts.push(part());
    const [only] = parts;
    return parts.length === 1 && only !== undefined ? only : { type: word, parts };
  }

  #term(depth: number): Filter {
    if ((this.#terms += 1) > limits.terms) throw invalid(`A filter has at most ${limits.terms} terms.`);
    if (this.#takeWord('not')) {
      this.#take('(');
      const part = this.either(depth + 1);
      this.#take(')');
      return { type: 'not', part };
    }
    if (this.#takeMark('(')) {
      const inner = this.either(depth + 1);
      this.#take(')');
      return inner;
    }
    const path = this.#path();
    if (this.#takeMark('[')) {
      const part = this.either(depth + 1);
      this.#take(']');
      return { type: 'element', path, part };
    }
    const op = this.#next()?.text.toLowerCase() ?? '';
    if (op === 'pr') return { type: 'present', path };
    if (!comparisons.has(op)) throw invalid(`"${op.slice(0, 50)}" is not a filter operator.`);
    return { type: 'compare', path, op: op as Comparison, value: this.#value() };
  }

  #path(): string {
    const token = this.#next();
    if (token?.kind !== 'word') throw invalid('A term of a filter begins with an attribute.');
    return attributePath(token.text, 'invalidFilter');
  }

  #value(): JsonValue {
    const token = this.#next();
    if (token?.kind === 'value' && token.value !== undefined) return token.value;
    const literal = token?.kind === 'word' ? literals.get(token.text.toLowerCase()) : undefined;
    if (literal === undefined) throw invalid('An operator of a filter is followed by a value in JSON.');
    return literal;
  }

  #next(): Token | undefined {
    return this.#tokens[this.#at++];
  }

  #takeWord(word: string): boolean {
    const token = this.#tokens[this.#at];
    const isIt = token?.kind === 'word' && token.text.toLowerCase() === word;
    if (isIt) this.#at += 1;
    return isIt;
  }

  #takeMark(mark: string): boolean {
    const token = this.#tokens[this.#at];
    const isIt = token?.kind === 'mark' && token.text === mark;
    if (isIt) this.#at += 1;
    return isIt;
  }

  #take(mark: string): void {
    if (!this.#takeMark(mark)) throw invalid(`The filter lacks a "${mark}".`);
  }
}

function invalid(message: string): ScimError {
  return new ScimError(400, message, 'invalidFilter');
}

/** Returns true when a resource, or an element of a multi-valued attribute, fits a filter. */
export function matches(filter: Filter, resource: JsonValue): boolean {
  switch (filter.type) {
    case 'and':
      return filter.parts.every((part) => matches(part, resource));
    case 'or':
      return filter.parts.some((part) => matches(part, resource));
    case 'not':
      return !matches(filter.part, resource);
    case 'element':
      return elementsAt(resource, filter.path).some((element) => matches(filter.part, element));
    case 'present':
      return elementsAt(resource, filter.path).some(isPresent);
    case 'compare':
      return comparesAt(filter, resource);
  }
}

function comparesAt(filter: Filter & { readonly type: 'compare' }, resource: JsonValue): boolean {
  const { op, path, value: given } = filter;
  const values = elementsAt(resource, path).map(plainValue);
  const isExact = exactPaths.has(path);
  if (op === 'ne') return !values.some((value) => compare('eq', value, given, isExact));
  if (values.length === 0) return op === 'eq' && given === null;
  return values.some((value) => compare(op, value, given, isExact));
}

/** Paths whose texts differ by case. */
const exactPaths: ReadonlySet<string> = new Set([
  'id',
  'externalid',
  'members',
  'members.value',
  'groups',
  'groups.value',
  'meta.location',
  'meta.version',
]);

function compare(op: Exclude<Comparison, 'ne'>, own: JsonValue, given: JsonValue, isExact: boolean): boolean {
  if (typeof own === 'boolean') return op === 'eq' && own === booleanOf(given);
  if (typeof own !== 'string' || typeof given !== 'string') return op === 'eq' && own === given;
  const [one, other] = isExact ? [own, given] : [own.toLowerCase(), given.toLowerCase()];
  switch (op) {
    case 'eq':
      return one === other;
    case 'co':
      return one.includes(other);
    case 'sw':
      return one.startsWith(other);
    case 'ew':
      return one.endsWith(other);
    case 'gt':
      return one > other;
    case 'ge':
      return one >= other;
    case 'lt':
      return one < other;
    case 'le':
      return one <= other;
  }
}

/** Reads a path such as `name.familyName`, in lower case and without a URN of ours. Throws 400 for one that is too long. */
export function attributePath(text: string, scimType: 'invalidFilter' | 'invalidPath'): string {
  const path = withoutUrn(text) ?? text;
  if (path.length > limits.path || path.split('.').length > limits.steps)
    throw new ScimError(
      400,
      `The path of an attribute has at most ${limits.path} characters and ${limits.steps} parts.`,
      scimType,
    );
  return path.toLowerCase();
}

/** Reads a boolean also where a directory writes it as a text. */
export function booleanOf(value: JsonValue | undefined): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  return text === 'true' ? true : text === 'false' ? false : undefined;
}

/** Returns the values at a path, those of all elements of multi-valued attributes. */
export function elementsAt(resource: JsonValue, path: string): JsonValue[] {
  let values: JsonValue[] = [resource];
  for (const step of path.split('.')) values = values.flatMap((value) => memberOf(value, step));
  return values;
}

function memberOf(value: JsonValue, name: string): JsonValue[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const object = value as JsonObject;
  const found = Object.keys(object).find((key) => key.toLowerCase() === name);
  const member = found === undefined ? undefined : object[found];
  if (member === undefined || member === null) return [];
  return Array.isArray(member) ? [...(member as readonly JsonValue[])] : [member];
}

/** Returns the value that stands for an element in comparisons. */
function plainValue(element: JsonValue): JsonValue {
  if (typeof element !== 'object' || element === null || Array.isArray(element)) return element;
  return (element as JsonObject)['value'] ?? null;
}

function isPresent(value: JsonValue): boolean {
  return value !== '' && value !== null;
}
