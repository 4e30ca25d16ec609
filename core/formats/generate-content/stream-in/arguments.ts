/** Arguments of function calls that a stream sends as paths and values. */
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { garbage } from '../errors.ts';

type Key = string | number;

interface Leaf {
  value: JsonValue;
}

interface Container {
  /** Its keys are numbers. */
  readonly list: boolean;
  readonly members: Map<Key, Leaf | Container>;
  /** Number of members in the text. */
  written: number;
}

/** Deepest arguments that are put together. */
const depthLimit = 128;

/**
 * Converts the arguments of one call, which arrive as paths and values, to JSON text. Each returned piece continues the previous one. Paths
 * arrive mostly in order, because models write arguments from front to back. A value for a passed position is written at the end, by
 * repeating its outermost member, because JSON parsers take the last of two members with one name.
 */
export class PartialArguments {
  readonly #root = container(false);
  /** Open objects and lists of the text, outermost first. */
  readonly #open: Container[] = [];
  /** The string in whose middle the text ends. */
  #speaking: Leaf | undefined;
  /** Members of the root that are written at the end. */
  readonly #late = new Set<Key>();

  /** Decodes one entry of `partialArgs`. Returns the next part of the text. */
  add(partial: JsonObject): string {
    const path = typeof partial.jsonPath === 'string' ? partial.jsonPath : '';
    const value = valueOf(partial);
    return value === undefined ? '' : this.#put(keysOf(path), value);
  }

  /** Arguments that came as an object. */
  addObject(args: JsonObject): string {
    return Object.keys(args)
      .map((key) => this.#put([key], args[key] ?? null))
      .join('');
  }

  /** Returns the rest of the text; empty if there were no arguments. */
  end(): string {
    let text = this.#closeTo(1);
    if (this.#open.length === 0 && this.#late.size === 0) return text;
    if (this.#open.length === 0) text += '{';
    for (const key of this.#late) {
      text += `${this.#root.written > 0 ? ',' : ''}${JSON.stringify(key)}:${textOf(this.#root.members.get(key))}`;
      this.#root.written += 1;
    }
    return `${text}}`;
  }

  #put(keys: readonly Key[], value: JsonValue): string {
    const { chain, known, last } = this.#openContainers(keys);
    const holder = chain.at(-1) ?? this.#root;
    const before = holder.members.get(last);
    const [top = last] = keys;
    if (typeof value === 'string' && isLeaf(before) && typeof before.value === 'string') {
      before.value += value;
      if (before === this.#speaking) return inString(value);
      if (value !== '') this.#late.add(top);
      return '';
    }
    const leaf: Leaf = { value };
    holder.members.set(last, leaf);
    if (before !== undefined || !this.#follows(chain, known, keys)) this.#late.add(top);
    return this.#late.has(top) ? '' : this.#write(chain, known, keys, leaf);
  }

  /** Returns the containers on the path to a member, creating missing ones, and the number of existing ones. */
  #openContainers(keys: readonly Key[]): {
    readonly chain: readonly Container[];
    readonly known: number;
    readonly last: Key;
  } {
    const chain: Container[] = [this.#root];
    let holder = this.#root;
    let known = 1;
    for (const [depth, key] of keys.slice(0, -1).entries()) {
      let next = holder.members.get(key);
      if (next === undefined || isLeaf(next)) {
        if (next !== undefined) this.#late.add(keys[0] ?? key);
        next = container(typeof keys[depth + 1] === 'number');
        holder.members.set(key, next);
      } else if (known === chain.length) known += 1;
      chain.push(next);
      holder = next;
    }
    return { chain, known, last: keys.at(-1) ?? '' };
  }

  /** Returns true when the text can go on with a new member there: all that it lies in is open, and lists have their elements in order. */
  #follows(chain: readonly Container[], known: number, keys: readonly Key[]): boolean {
    return chain.every((holder, depth) => {
      if (depth < known && depth > 0 && this.#open[depth] !== holder) return false;
      const key = keys[depth];
      if (depth < known - 1) return true;
      return holder.list ? key === holder.written : typeof key === 'string';
    });
  }

  #write(chain: readonly Container[], known: number, keys: readonly Key[], leaf: Leaf): string {
    let text = this.#closeTo(known);
    for (let depth = known - 1; depth < chain.length; depth += 1) {
      const holder = chain[depth];
      if (holder === undefined) break;
      if (this.#open.length === depth) {
        this.#open.push(holder);
        text += holder.list ? '[' : '{';
      }
      if (holder.written > 0) text += ',';
      holder.written += 1;
      if (!holder.list) text += `${JSON.stringify(keys[depth])}:`;
    }
    if (typeof leaf.value !== 'string') return text + JSON.stringify(leaf.value);
    this.#speaking = leaf;
    return `${text}"${inString(leaf.value)}`;
  }

  /** Closes the string in which the text ends, and what is open but for the outermost containers. */
  #closeTo(kept: number): string {
    let text = this.#speaking === undefined ? '' : '"';
    this.#speaking = undefined;
    while (this.#open.length > kept) text += this.#open.pop()?.list === true ? ']' : '}';
    return text;
  }
}

function container(list: boolean): Container {
  return { list, members: new Map(), written: 0 };
}

function isLeaf(member: Leaf | Container | undefined): member is Leaf {
  return member !== undefined && 'value' in member;
}

function inString(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Lists have their elements in the order of their numbers; none is made up for a number that never came. */
function textOf(member: Leaf | Container | undefined): string {
  if (member === undefined) return 'null';
  if (isLeaf(member)) return JSON.stringify(member.value);
  const { list, members } = member;
  const isList = list && [...members.keys()].every((key) => typeof key === 'number');
  if (!isList)
    return `{${[...members].map(([key, value]) => `${JSON.stringify(String(key))}:${textOf(value)}`).join(',')}}`;
  const sorted = [...members].toSorted(([one], [other]) => Number(one) - Number(other));
  return `[${sorted.map(([, value]) => textOf(value)).join(',')}]`;
}

/** Returns the value of an entry, under the name of any kind of value; undefined if it has none. A string may begin empty. */
function valueOf(partial: JsonObject): JsonValue | undefined {
  for (const key of Object.keys(partial)) {
    if (key === 'jsonPath' || key === 'willContinue') continue;
    if (key === 'nullValue') return null;
    const value = partial[key];
    if (
      key === 'numberValue' &&
      typeof value === 'string' &&
      value.trim() !== '' &&
      Number.isFinite(Number(value))
    )
      return Number(value);
    if (value !== undefined) return value;
  }
  return partial.willContinue === true ? '' : undefined;
}

const step = /\.([^.[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\['((?:[^'\\]|\\.)*)'\]/y;

/** Returns the keys of a JSONPath to one place. One that is no such path is a name as it stands, so that its value is not lost. */
function keysOf(path: string): readonly Key[] {
  const keys: Key[] = [];
  let at = path.startsWith('$') ? 1 : path.length;
  while (at < path.length) {
    step.lastIndex = at;
    const found = step.exec(path);
    if (found === null) return [path];
    const [, name, index, double, single] = found;
    // The outermost container is no list.
    if (index !== undefined) keys.push(keys.length === 0 ? index : Number(index));
    else keys.push(name ?? unquoted(double ?? `"${requoted(single ?? '')}"`));
    if (keys.length > depthLimit) throw garbage();
    at = step.lastIndex;
  }
  return keys.length === 0 ? [path] : keys;
}

/** Converts text between single quotes to text between double quotes. */
function requoted(inner: string): string {
  return inner.replaceAll(/\\'|\\.|"/g, (found) => (found === "\\'" ? "'" : found === '"' ? '\\"' : found));
}

function unquoted(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}
