import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { addressRowOf, addressSign, longestSign, memberNamed, type AddressRow } from './members.ts';

/** An address that a request names, which its provider reads or writes with the operator's credentials, or on its own disk. */
export interface NamedAddress {
  /** The client's path of it. */
  readonly path: string;
  readonly value: string;
  readonly use: AddressRow['use'];
}

/** Number of characters that are searched at once. */
const stretch = 64 * 1024;

/** False where JSON names no such address, found by a look at its letters. */
export function mayNameAddress(text: string | Buffer): boolean {
  if (typeof text === 'string') return addressSign.test(text) || text.includes('\\u00');
  for (let from = 0; from < text.length; from += stretch)
    if (addressSign.test(text.toString('latin1', from, from + stretch + longestSign))) return true;
  return text.includes('\\u00');
}

/** Maximum number of addresses of a request, because each is compared with what is allowed. */
const maxAddresses = 1000;

/** Where the walk is: a value, its path, and the folded name of the member around it. */
interface Step {
  readonly value: JsonValue;
  readonly path: string;
  readonly within: string;
}

/**
 * Returns the addresses in a body that only the operator can allow, at any depth. Throws 400 for more than a thousand of them.
 */
export function addressesIn(body: JsonValue): readonly NamedAddress[] {
  const found: NamedAddress[] = [];
  const rest: Step[] = [{ value: body, path: '', within: '' }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, path, within } = step;
    if (Array.isArray(value))
      value.forEach((one: JsonValue, index) => {
        if (typeof one === 'object' && one !== null)
          rest.push({ value: one, path: `${path}[${index}]`, within });
      });
    else if (isObject(value)) visit(value, step, rest, found);
  }
  return found;
}

function visit(object: JsonObject, { path, within }: Step, rest: Step[], found: NamedAddress[]): void {
  // Calls of tools stand in lists, or in a member of their own. Elsewhere such a type hides nothing.
  const isCall =
    within === 'tooluse' ||
    (path.endsWith(']') && typeof object['type'] === 'string' && object['type'].endsWith('tool_use'));
  for (const name in object) {
    const value = object[name];
    if (value === undefined || value === null) continue;
    const isText = typeof value === 'string';
    if (!isText && typeof value !== 'object') continue;
    const { folded, isIgnored, mayHaveRow } = memberNamed(name);
    if (isIgnored || (isText && !mayHaveRow) || (isCall && folded === 'input')) continue;
    const at = path === '' ? name : `${path}.${name}`;
    const isList = Array.isArray(value);
    const row = mayHaveRow && (isText || isList) ? addressRowOf(folded, within) : undefined;
    if (row !== undefined && isText) add(value, at, row, found);
    if (row !== undefined && isList)
      value.forEach((one: JsonValue, index) => {
        if (typeof one === 'string') add(one, `${at}[${index}]`, row, found);
      });
    if (!isText) rest.push({ value, path: at, within: folded });
  }
}

function add(value: string, path: string, { use, judged }: AddressRow, found: NamedAddress[]): void {
  if (value === '' || !isJudged(value, judged)) return;
  found.push({ path, value, use });
  if (found.length > maxAddresses)
    throw new GatewayError('invalid_value', `A request names at most ${maxAddresses} addresses of storage.`);
}

/** So many characters are looked at for a scheme. Readers of addresses leave out white space and control characters. */
const head = 200;

function isJudged(value: string, judged: AddressRow['judged']): boolean {
  if (judged === 'all') return true;
  // oxlint-disable-next-line no-control-regex -- they are what is removed
  const start = value.slice(0, head).replaceAll(/[\0-\x20]/g, '');
  if (judged === 'projects') return /^\/*projects\//i.test(start);
  const scheme = /^[a-z][\w+.-]*(?=:)/i.exec(start)?.[0].toLowerCase();
  if (scheme !== undefined) return !web.has(scheme);
  return judged === 'paths' && isPath(value, start);
}

/** Addresses that a provider reads without the operator's credentials, and data. */
const web: ReadonlySet<string> = new Set(['http', 'https', 'data']);

/** True for what stands in the place of an address and is neither the id of a file nor base64, of which that of a JPEG begins with a slash. */
function isPath(value: string, start: string): boolean {
  if (start.startsWith('/') && !start.startsWith('/9j/')) return true;
  return /[^\w+/=\s-]/.test(value);
}

/** As {@link addressesIn}, for the fields of a form, also where their text is JSON. */
export function addressesInFields(fields: JsonObject): readonly NamedAddress[] {
  const parsed: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    parsed[name] = typeof value === 'string' && /^\s*[[{]/.test(value) ? jsonOr(value) : value;
  }
  return addressesIn(parsed);
}

function jsonOr(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
