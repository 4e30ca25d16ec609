/** Types of edits to settings files, independent of their syntax, and the path lookups that the syntaxes share. */
import { isObject, type JsonValue } from '../../../model/json.ts';

/** One change of a settings file. */
export interface Edit {
  /** The members on the way to the value, from the top of the file. Empty: the whole file is a list. */
  readonly path: readonly string[];
  /** The new value. Absent: the member is removed. */
  readonly value?: JsonValue;
  /**
   * The value is one item of a list at the path: it replaces the item that has the same value under this member, or is appended. Together with
   * `item`, which names that value, an absent value removes the item.
   */
  readonly by?: string;
  readonly item?: string;
  /** True: a value that is there already stays. */
  readonly isDefault?: boolean;
}

/** A syntax of settings files. All changes keep comments, order and other members. */
export interface Syntax {
  /** Returns the text with the edits made. Throws an Error with a reason when the text is not valid, or cannot be edited safely. */
  apply(text: string, edits: readonly Edit[]): string;
  /** Returns the value at a path; undefined where there is none. */
  read(text: string, path: readonly string[]): JsonValue | undefined;
}

/** Follows a path through parsed values. */
export function valueAt(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  let found = value;
  for (const name of path) {
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}

/** Returns the index of the item that an edit of a list replaces; -1 where there is none. */
export function indexOfItem(list: readonly JsonValue[], { by = '', item, value }: Edit): number {
  const wanted = item ?? valueAt(value, [by]);
  return list.findIndex((one) => valueAt(one, [by]) === wanted);
}
