/**
 * Finds the storage addresses and file paths in a request that its provider would open with the operator's credentials or on its own disk.
 */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { addressRowOf, addressSign, longestSign, memberNamed, type AddressRow } from './members.ts';

/** Such an address, with its path in the request. */
export interface NamedAddress {
  /** Path of its member in the client's body. */
  readonly path: string;
  readonly value: string;
  readonly use: AddressRow['use'];
}

/** Number of bytes that are searched at once. */
const stretch = 64 * 1024;

/** Returns false when JSON contains no such address, by a fast search of the unparsed text. */
export function mayNameAddress(text: string | Buffer): boolean {
  if (typeof text === 'string') return addressSign.test(text) || text.includes('\\u00');
  for (let from = 0; from < text.length; from += stretch)
    if (addressSign.test(text.toString('latin1', from, from + stretch + longestSign))) return true;
  return text.includes('\\u00');
}

/** Maximum number of addresses of a request, because each is compared with the allowed ones. */
const maxAddresses = 1000;

/** Position in the body: a value, its name or index in its parent, its parent, and the folded name of the nearest member. */
interface Step {
  readonly value: JsonValue;
  readonly name: string | number;
  readonly around: Step | undefined;
  readonly within: string;
}

/**
 * Returns the addresses in a body that only the operator can allow, at any depth. Throws 400 for more than a thousand of them.
 */
export function addressesIn(body: JsonValue): readonly NamedAddress[] {
  const found: NamedAddress[] = [];
  const rest: Step[] = [{ value: body, name: '', around: undefined, within: '' }];
  for (let step = rest.pop(); step !== undefined; step = rest.pop()) {
    const { value, within } = step;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        const one = value[index] as JsonValue;
        if (typeof one === 'object' && one !== null)
          rest.push({ value: one, name: index, around: step, within });
      }
    } else if (isObject(value)) visit(value, step, rest, found);
  }
  return found;
}

function visit(object: JsonObject, step: Step, rest: Step[], found: NamedAddress[]): void {
  const { within } = step;
  // Tool calls are in lists, or in a member of their own. Elsewhere such a `type` does not exclude `input` from the search.
  const isCall =
    within === 'tooluse' ||
    (typeof step.name === 'number' &&
      typeof object['type'] === 'string' &&
      object['type'].endsWith('tool_use'));
  for (const name in object) {
    const value = object[name];
    if (value === undefined || value === null) continue;
    const isText = typeof value === 'string';
    if (!isText && typeof value !== 'object') continue;
    const { folded, isIgnored, mayHaveRow } = memberNamed(name);
    if (isIgnored || (isText && !mayHaveRow) || (isCall && folded === 'input')) continue;
    const isList = Array.isArray(value);
    const row = mayHaveRow && (isText || isList) ? addressRowOf(folded, within) : undefined;
    if (row !== undefined && isText && isAddress(value, row))
      add({ path: pathOf(step, name), value, use: row.use }, found);
    if (row !== undefined && isList)
      value.forEach((one: JsonValue, index) => {
        if (typeof one === 'string' && isAddress(one, row))
          add({ path: `${pathOf(step, name)}[${index}]`, value: one, use: row.use }, found);
      });
    if (!isText) rest.push({ value, name, around: step, within: folded });
  }
}

/** Returns the path of a member in the client's body: `messages[0].content[1].image_url.url`. */
function pathOf(step: Step, name: string): string {
  let path = name;
  for (let at: Step | undefined = step; at?.around !== undefined; at = at.around)
    path = typeof at.name === 'number' ? `[${at.name}]${joined(path)}` : `${at.name}${joined(path)}`;
  return path;
}

function joined(path: string): string {
  return path.startsWith('[') ? path : `.${path}`;
}

function add(address: NamedAddress, found: NamedAddress[]): void {
  found.push(address);
  if (found.length > maxAddresses)
    throw new GatewayError('invalid_value', `A request can name at most ${maxAddresses} storage URLs.`);
}

/** Number of characters in which a scheme is searched, without white space and control characters, which URL parsers ignore. */
const head = 200;

/** Returns true for a text in a member of this row that only the operator can allow. */
function isAddress(value: string, { judged }: AddressRow): boolean {
  if (value === '') return false;
  if (judged === 'all') return true;
  // oxlint-disable-next-line no-control-regex -- they are what is removed
  const start = value.slice(0, head).replaceAll(/[\0-\x20]/g, '');
  if (judged === 'projects') return /^\/*projects\//i.test(start);
  const scheme = /^[a-z][\w+.-]*(?=:)/i.exec(start)?.[0].toLowerCase();
  if (scheme !== undefined) return !web.has(scheme);
  return judged === 'paths' && isPath(value, start);
}

/** Schemes that a provider reads without the operator's credentials. */
const web: ReadonlySet<string> = new Set(['http', 'https', 'data']);

/** Returns true for a text that is neither the id of a file nor base64. Base64 of a JPEG begins with a slash. */
function isPath(value: string, start: string): boolean {
  if (start.startsWith('/') && !start.startsWith('/9j/')) return true;
  return /[^\w+/=\s-]/.test(value);
}

/** Does the same as {@link addressesIn} for the fields of a form, also where their text is JSON. */
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
