import {
  applyEdits,
  createScanner,
  modify,
  parse,
  parseTree,
  findNodeAtLocation,
  printParseErrorCode,
  type Edit as TextEdit,
  type ParseError,
} from 'jsonc-parser';
import type { JsonValue } from '../../../model/json.ts';
import { indexOfItem, valueAt, type Edit, type Syntax } from './document.ts';

/** JSON with comments and trailing commas, as editors and agents write it. */
export const json: Syntax = {
  apply(text, edits) {
    let edited = text.trim() === '' ? '{}\n' : text;
    parsed(edited);
    for (const edit of edits) edited = applyEdits(edited, changesOf(edited, edit));
    parsed(edited);
    return edited.endsWith('\n') ? edited : `${edited}\n`;
  },
  read: (text, path) => (text.trim() === '' ? undefined : valueAt(parsed(text), path)),
};

function parsed(text: string): JsonValue {
  const errors: ParseError[] = [];
  const value = parse(text, errors, { allowTrailingComma: true }) as JsonValue;
  const [first] = errors;
  if (first !== undefined) {
    const line = text.slice(0, first.offset).split('\n').length;
    throw new Error(`it is not valid JSON: ${printParseErrorCode(first.error)} in line ${line}`);
  }
  return value;
}

function changesOf(text: string, edit: Edit): TextEdit[] {
  const found = valueAt(parsed(text), edit.path);
  const formattingOptions = { insertSpaces: true, tabSize: indentOf(text), eol: '\n' };
  if (edit.by === undefined)
    return edit.value === undefined && found === undefined
      ? []
      : modify(text, [...edit.path], edit.value, { formattingOptions });
  const items = Array.isArray(found) ? found : [];
  const index = indexOfItem(items, edit);
  if (edit.value === undefined) return index === -1 ? [] : removalOf(text, [...edit.path, index]);
  const isArrayInsertion = index === -1;
  const path = [...edit.path, isArrayInsertion ? items.length : index];
  return modify(text, path, edit.value, { formattingOptions, isArrayInsertion });
}

/** Returns the removal of an item of a list, with one comma beside it. The library breaks lists that end in the line of their last item. */
function removalOf(text: string, path: (string | number)[]): TextEdit[] {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const item = root === undefined ? undefined : findNodeAtLocation(root, path);
  if (item?.parent === undefined) return [];
  const end = item.offset + item.length;
  const start = item.offset - (/(?:\n[ \t]*)?$/.exec(text.slice(0, item.offset))?.[0].length ?? 0);
  const comma =
    commasIn(text, end, item.parent.offset + item.parent.length)[0] ??
    commasIn(text, endBefore(item.parent.children ?? [], item.offset), item.offset).at(-1);
  const removal = { offset: start, length: end - start, content: '' };
  return comma === undefined ? [removal] : [removal, { offset: comma, length: 1, content: '' }];
}

/** Returns where the last of these nodes ends that stands before an offset; the offset itself where there is none. */
function endBefore(
  nodes: readonly { readonly offset: number; readonly length: number }[],
  offset: number,
): number {
  const node = nodes.findLast((one) => one.offset < offset);
  return node === undefined ? offset : node.offset + node.length;
}

/** Returns the offsets of the commas from an offset to the first token that is none, outside comments. */
function commasIn(text: string, from: number, to: number): readonly number[] {
  const scanner = createScanner(text, true);
  scanner.setPosition(from);
  const found: number[] = [];
  for (;;) {
    scanner.scan();
    const offset = scanner.getTokenOffset();
    if (offset >= to || text[offset] !== ',') return found;
    found.push(offset);
  }
}

function indentOf(text: string): number {
  return /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
}
