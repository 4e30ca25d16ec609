/** Describes what differs between two states of a thing. */

/** Members that say nothing about an edit, or that only lists have. */
const unedited: ReadonlySet<string> = new Set([
  'version',
  'spent',
  'lastUsedAt',
  'lastSignInAt',
  'oldSecret',
  'state',
]);

/** Describes the fields in which a thing differs from what it was, with their new values. */
export function differences(before: object, after: object): string[] {
  const [was, is] = [before, after].map((thing) => thing as Readonly<Record<string, unknown>>);
  const names = new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})]);
  return [...names]
    .filter((name) => !unedited.has(name) && textOf(was?.[name]) !== textOf(is?.[name]))
    .map((name) => `${nameOf(name)} is now ${textOf(is?.[name]).slice(0, 200)}`);
}

function nameOf(field: string): string {
  const words = field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function textOf(value: unknown): string {
  if (value === undefined || value === null || value === '') return 'empty';
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map(textOf).join(', ');
  if (typeof value !== 'object') return String(value);
  const { unit, amount, period, hours, timeZone } = value as Readonly<Record<string, unknown>>;
  if (typeof amount !== 'number') return JSON.stringify(value);
  const money = unit === 'token' ? `${amount} tokens` : `$${amount / 1e6}`;
  const zone = timeZone === undefined ? '' : ` (${String(timeZone)})`;
  return `${money} per ${period === 'hours' ? `${String(hours)} hours` : String(period)}${zone}`;
}
