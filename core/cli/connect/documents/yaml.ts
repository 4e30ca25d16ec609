import { parseDocument, type Document } from 'yaml';
import type { JsonValue } from '../../../model/json.ts';
import { indexOfItem, valueAt, type Edit, type Syntax } from './document.ts';

/** YAML 1.2, whose comments and order are kept. */
export const yaml: Syntax = {
  apply(text, edits) {
    const document = parsed(text);
    for (const edit of edits) applyOne(document, edit);
    return document.toString({ lineWidth: 0 });
  },
  read: (text, path) => valueAt(parsed(text).toJS() as JsonValue, path),
};

function parsed(text: string): Document {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new Error(`it is not valid YAML: ${error.message.split('\n')[0]}`);
  return document;
}

function applyOne(document: Document, edit: Edit): void {
  const path = pathOf(document, edit);
  if (edit.value === undefined) {
    if (document.hasIn(path)) document.deleteIn(path);
  } else if (path.length === 0)
    document.contents = document.createNode(edit.value) as typeof document.contents;
  else document.setIn(path, document.createNode(edit.value));
}

/** Returns the path of an edit for the library, where items of lists have numbers. A list that is missing is made. */
function pathOf(document: Document, edit: Edit): (string | number)[] {
  if (edit.by === undefined) return [...edit.path];
  const list = valueAt(document.toJS() as JsonValue, edit.path);
  if (!Array.isArray(list) && edit.value !== undefined) {
    const empty = document.createNode([]);
    if (edit.path.length === 0) document.contents = empty as typeof document.contents;
    else document.setIn(edit.path, empty);
  }
  const items = Array.isArray(list) ? list : [];
  const index = indexOfItem(items, edit);
  return [...edit.path, index === -1 ? items.length : index];
}
