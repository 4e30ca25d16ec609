/** The tools in an outline, parsed once for all calls that send the same. */
import type { JsonValue } from '../../model/json.ts';
import { shareValue } from '../../performance/shared-values.ts';

/**
 * Caches parsed outlines of tools, because agents send the same tools with each call. Tools are most of an outline: ten of the eleven KB of
 * a first turn with 12 tools. Of such a turn (55 KB), in microseconds: its outline made and parsed 62, with the tools of an earlier one 21.
 */

/** Bytes of what is remembered in all, as values take several times as much, and of one: shorter ones are not worth it. */
const mostRemembered = 1024 * 1024;
const longest = 128 * 1024;
const shortest = 1024;
/** Maximum number of remembered values of equal length, because each of them may have to be compared. */
const mostAlike = 8;

interface Remembered {
  readonly text: Buffer;
  readonly value: JsonValue;
}

/** Cached outlines by length, latest last. Compared by bytes, because that takes a fraction of the time of a digest. */
const remembered = new Map<number, Remembered[]>();
let weight = 0;

/** Returns the value that stands in `text` behind the name of a member and its colon. It never changes: others have it too. Throws for no JSON. */
export function toolsOf(text: Buffer): JsonValue {
  const { length } = text;
  const alike = remembered.get(length);
  const known = alike?.find((one) => one.text.equals(text));
  if (alike !== undefined && known !== undefined) {
    remembered.delete(length);
    remembered.set(length, alike);
    return known.value;
  }
  const { tools } = JSON.parse(`{"tools"${text.toString('utf8')}}`) as { readonly tools: JsonValue };
  if (length < shortest || length > longest) return tools;
  remember(alike ?? [], { text: Buffer.from(text), value: shareValue(tools) });
  return tools;
}

function remember(alike: Remembered[], one: Remembered): void {
  const { length } = one.text;
  alike.push(one);
  weight += length;
  if (alike.length > mostAlike) {
    alike.shift();
    weight -= length;
  }
  remembered.delete(length);
  remembered.set(length, alike);
  for (const [oldest, those] of remembered) {
    if (weight <= mostRemembered) break;
    remembered.delete(oldest);
    weight -= oldest * those.length;
  }
}
