import type { JsonValue } from '../../../model/json.ts';

/*
 * An agent sends the same tools with each of its calls, and so does every agent of its kind. They are most of what an outline has to say:
 * ten of the eleven KB of a first turn with 12 tools. Their outline is parsed once. Of such a turn (55 KB), in microseconds: its outline
 * made and parsed 67, with the tools of an earlier one 39.
 */

/** Characters of what is remembered in all, as values take several times as much, and of one: shorter ones are not worth it. */
const mostRemembered = 1024 * 1024;
const longest = 128 * 1024;
const shortest = 1024;

const remembered = new Map<string, JsonValue>();
let weight = 0;

/** The value that stands in `text` behind the name of a member and its colon. It never changes: others have it too. Throws for no JSON. */
export function toolsOf(text: string): JsonValue {
  const known = remembered.get(text);
  if (known !== undefined) {
    // The latest stand last.
    remembered.delete(text);
    remembered.set(text, known);
    return known;
  }
  const { tools } = JSON.parse(`{"tools"${text}}`) as { readonly tools: JsonValue };
  if (text.length < shortest || text.length > longest) return tools;
  remembered.set(text, frozen(tools));
  weight += text.length;
  for (const oldest of remembered.keys()) {
    if (weight <= mostRemembered) break;
    remembered.delete(oldest);
    weight -= oldest.length;
  }
  return tools;
}

/** Whoever changed them would change them for the calls of others. */
function frozen(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  for (const one of Object.values(value)) frozen(one as JsonValue);
  return Object.freeze(value);
}
