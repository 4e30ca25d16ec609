/** Describes what differs between two states of a thing. */
import { pricingLines, wordsOf } from './price-words.ts';
import { count, exactly } from './text.ts';
import { called, linesOf } from './value-text.ts';

/** Members that are not part of an edit, or that only lists have. */
const unedited: ReadonlySet<string> = new Set([
  'version',
  'spent',
  'lastUsedAt',
  'lastSignInAt',
  'oldSecret',
  'state',
]);

/** A field that differs, with its values in words. */
export interface Difference {
  readonly name: string;
  /** Undefined where the thing had no such field. */
  readonly was: string | undefined;
  readonly is: string | undefined;
}

/** Returns the fields in which two states of a thing differ. Undefined stands for a thing that was not there, or is not any more. */
export function differencesOf(before: object = {}, after: object = {}): Difference[] {
  const [was, is] = [fieldsOf(before), fieldsOf(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((name) => ({ name, was: was.get(name), is: is.get(name) }))
    .filter((one) => one.was !== one.is);
}

/**
 * Describes the fields in which a thing differs from what it was, with their new values. Fields of `exact` are described even where words
 * do not show how they differ, such as a time by less than a second.
 */
export function differences(before: object, after: object, exact: readonly string[] = []): string[] {
  const unseen = exact.flatMap((field): Pick<Difference, 'name' | 'is'>[] => {
    const [was, is] = [valueAt(before, field), valueAt(after, field)];
    if (exactText(field, was) === exactText(field, is)) return [];
    const isSeen = differencesOf({ [field]: was }, { [field]: is }).length > 0;
    return isSeen ? [] : [{ name: nameOf(field), is: textOf(is, field) }];
  });
  return [...differencesOf(before, after), ...unseen].map(
    ({ name, is }) => `${name} is now ${is?.slice(0, 200) ?? 'empty'}`,
  );
}

const valueAt = (thing: object, field: string): unknown =>
  (thing as Readonly<Record<string, unknown>>)[field];

/** Returns the text by which a field is compared. Budgets are compared by their words, because what they have spent is no edit. */
const exactText = (field: string, value: unknown): string | undefined =>
  field === 'budgets' ? textOf(value) : JSON.stringify(value);

/** Returns the fields that people edit, with their values in words. The prices of a rule are fields by themselves. */
function fieldsOf(thing: object): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(thing) as [string, unknown][]) {
    if (unedited.has(name) || isEmpty(value)) continue;
    if (name === 'value') {
      // An entry of the configuration.
      for (const [path, text] of linesOf(value)) fields.set(path === '' ? 'Value' : called(path), text);
    } else if (name !== 'pricing') fields.set(nameOf(name), textOf(value, name));
    else {
      const lines = pricingLines(value);
      for (const [about, text] of lines) {
        let title = `Price of ${about}`;
        // Rows may have equal patterns.
        for (let number = 2; fields.has(title); number++) title = `Price of ${about} (${number})`;
        fields.set(title, text);
      }
      // The first that fits a model decides.
      if (lines.length > 2) fields.set('Order of prices', lines.map(([about]) => about).join(', '));
    }
  }
  return fields;
}

function nameOf(field: string): string {
  const words = wordsOf(field);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.every((entry) => entry === ''));

function textOf(value: unknown, name = ''): string {
  if (isEmpty(value)) return 'empty';
  if (Array.isArray(value)) return value.map((entry) => textOf(entry)).join(', ');
  if (typeof value === 'number' && name.endsWith('At')) return exactly(value);
  if (typeof value !== 'object' || value === null) return String(value);
  return budgetText(value) ?? JSON.stringify(value);
}

/** Returns a budget as text: `$5 per month (Europe/Berlin)`; undefined for any other value. */
export function budgetText(budget: object): string | undefined {
  const { unit, amount, period, hours, timeZone } = budget as Readonly<Record<string, unknown>>;
  if (typeof amount !== 'number') return undefined;
  const money = unit === 'token' ? `${count(amount)} tokens` : `$${amount / 1e6}`;
  if (period === 'total') return `${money} in total`;
  const zone = timeZone === undefined ? '' : ` (${String(timeZone)})`;
  return `${money} per ${period === 'hours' ? `${String(hours)} hours` : String(period)}${zone}`;
}
