/** Values of the configuration as texts: a line for each member. */
import { isHidden, isMembers } from './json-schema.ts';
import { namedSecret } from './secret-forms.ts';
import { ago } from './text.ts';

/** Returns a single value as a text. */
export function textOf(value: unknown): string {
  if (isHidden(value)) {
    const when = value.setAt === undefined ? '' : `, set ${ago(value.setAt)}`;
    return `secret ${value.last4 === '' ? '' : `…${value.last4}`}${when}`;
  }
  const named = namedSecret(value);
  if (named !== undefined) return `${named.title.toLowerCase()} ${named.name}`;
  if (Array.isArray(value))
    return value.length === 0 ? 'none' : value.map((entry) => textOf(entry)).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the members of a value with their paths. Lists and secrets count as one. */
export function linesOf(value: unknown, path = ''): readonly (readonly [string, string])[] {
  const isOne = !isMembers(value) || isHidden(value) || Object.keys(value).length === 0;
  if (isOne || namedSecret(value) !== undefined) return [[path, textOf(value)]];
  return Object.entries(value).flatMap(([name, entry]) =>
    linesOf(entry, path === '' ? name : `${path}.${name}`),
  );
}

/** Returns a path for people, without `options` of a channel. */
export const called = (path: string): string => path.replace(/^options\./, '') || 'value';

/** Returns a value in a few words, for a table. */
export function summaryOf(value: unknown): string {
  if (!isMembers(value) || isHidden(value)) return textOf(value);
  const { type, options } = value;
  const models = isMembers(options) ? options['models'] : undefined;
  if (typeof type === 'string')
    return [type, ...(Array.isArray(models) ? models : isMembers(models) ? Object.keys(models) : [])].join(
      ', ',
    );
  return linesOf(value)
    .map(([path, text]) => `${path} ${text}`)
    .join(', ');
}
