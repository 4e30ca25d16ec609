/** Formats values of the admin API as tables, lists of fields and CSV. */
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { csvCell } from '../../model/csv-cell.ts';
import { table } from '../describe.ts';

/** Returns the value at a path such as `actor.name`. */
export function valueAt(item: JsonValue | undefined, path: string): JsonValue | undefined {
  return path.split('.').reduce<JsonValue | undefined>((inner, step) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return undefined;
    return Object.hasOwn(inner, step) ? (inner as JsonObject)[step] : undefined;
  }, item);
}

const moments = /(?:At|^at|^since|^until|^expires)$/;

/** Times for which 0 means that there is no limit: the start of a total budget, and an end that never comes. */
const endless = /^(?:since|until|expires)/;

const isMoney = (field: string): boolean => field.endsWith('icroDollars');

/** Returns the text of a value. `field` is the last step of its path. */
export function textOf(field: string, value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' && moments.test(field))
    return value === 0 && endless.test(field)
      ? 'always'
      : new Date(value).toISOString().slice(0, 19).replace('T', ' ');
  if (typeof value === 'number' && isMoney(field)) return dollars(value);
  if (Array.isArray(value)) return value.map((entry) => textOf(field, entry)).join(', ');
  if (typeof value !== 'object') return plain(String(value));
  return objectText(value as JsonObject);
}

/** Maximum length of a value that is printed as JSON, in characters. */
const mostJson = 300;

function objectText(value: JsonObject): string {
  const { unit, amount, period, hours, timeZone, spent, team, lead, id, last4 } = value;
  if (typeof amount === 'number' && typeof period === 'string') {
    const money = (count: number): string => (unit === 'token' ? `${count} tokens` : dollars(count));
    const zone = timeZone === undefined ? '' : ` (${plain(String(timeZone))})`;
    const each = `${money(amount)}/${period === 'hours' ? `${String(hours)}h` : period}${zone}`;
    return typeof spent === 'number' ? `${money(spent)} of ${each}` : each;
  }
  if (typeof team === 'string' && typeof lead === 'boolean') return lead ? `${team}:lead` : team;
  if (typeof last4 === 'string') return `…${last4}`;
  if (typeof id === 'string' && Array.isArray(value['changed'])) return plain(id);
  const text = plain(JSON.stringify(value));
  return text.length > mostJson ? `${text.slice(0, mostJson)}…` : text;
}

function dollars(microDollars: number): string {
  return `$${(microDollars / 1e6).toFixed(6).replace(/\.?0+$/, '')}`;
}

/** Replaces control characters, which could control the terminal, by spaces. */
function plain(text: string): string {
  return text.replaceAll(/\p{C}+/gu, ' ');
}

/** Returns a table with a title for each column. */
export function tableOf(items: readonly JsonObject[], columns: readonly string[]): string {
  const titles = columns.map((column) => titleOf(column).toUpperCase());
  const rows = items.map((item) => columns.map((column) => cellOf(item, column)));
  return table([titles, ...rows]).join('\n');
}

/** Returns all fields of a thing, one a line. */
export function fieldsOf(thing: JsonObject, columns = Object.keys(thing)): string {
  const rows = columns
    .filter((column) => valueAt(thing, column) !== undefined)
    .map((column) => [titleOf(column), cellOf(thing, column)]);
  return table(rows).join('\n');
}

function cellOf(item: JsonObject, column: string): string {
  return textOf(column.split('.').at(-1) ?? '', valueAt(item, column));
}

function titleOf(column: string): string {
  return column
    .replace('.', ' ')
    .replace('organisation', 'organization')
    .replace('microDollars', 'dollars')
    .replace('MicroDollars', 'Dollars')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Returns lines of CSV, with names of the fields in the first one. Money is in dollars. */
export function csvOf(items: readonly JsonObject[], columns: readonly string[]): string {
  const head = columns.map((column) =>
    column.replace('microDollars', 'dollars').replace('MicroDollars', 'Dollars'),
  );
  const rows = items.map((item) => columns.map((column) => cellText(column, valueAt(item, column))));
  return [head.map(csvCell), ...rows].map((cells) => cells.join(',')).join('\r\n');
}

function cellText(column: string, value: JsonValue | undefined): string {
  if (typeof value === 'number') return isMoney(column) ? dollars(value).slice(1) : String(value);
  return csvCell(textOf(column.split('.').at(-1) ?? '', value));
}

/** Fills `{name}` of a sentence with the texts of a thing. */
export function sentenceOf(pattern: string, thing: JsonObject): string {
  return pattern.replaceAll(/\{([\w.]+)\}/g, (_whole, path: string) => cellOf(thing, path));
}
