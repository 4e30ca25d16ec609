import { applyEdits, modify, parse, printParseErrorCode, type ParseError } from 'jsonc-parser';
import type { JsonValue } from '../../../model/json.ts';
import { placeOf, valueAt, type Edit, type Syntax } from './document.ts';

/** JSON with comments and trailing commas, as editors and agents write it. */
export const json: Syntax = {
  apply(text, edits) {
    let edited = text.trim() === '' ? '{}\n' : text;
    parsed(edited);
    const formattingOptions = { insertSpaces: true, tabSize: indentOf(edited), eol: '\n' };
    for (const edit of edits) {
      if (edit.value === undefined && valueAt(parsed(edited), edit.path) === undefined) continue;
      const [path, isInsertion] = pathOf(edit, parsed(edited));
      const options = { formattingOptions, isArrayInsertion: isInsertion };
      edited = applyEdits(edited, modify(edited, path, edit.value, options));
    }
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

/** Returns the path of an edit for the library, where items of lists have numbers, and whether an item is inserted. */
function pathOf(edit: Edit, document: JsonValue): readonly [(string | number)[], boolean] {
  if (edit.by === undefined) return [[...edit.path], false];
  const list = valueAt(document, edit.path);
  const items = Array.isArray(list) ? list : [];
  const place = placeOf(items, edit);
  return place === -1 ? [[...edit.path, items.length], true] : [[...edit.path, place], false];
}

function indentOf(text: string): number {
  return /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
}
