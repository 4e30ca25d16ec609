/** Values of the configuration for people: a line for each member, and what differs between two of them. */
import { isHidden, isMembers } from './json-schema.ts';
import { namedSecret } from './secret-forms.ts';
import { ago } from './text.ts';

/** Returns a single value as a text. */
function textOf(value: unknown): string {
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
function linesOf(value: unknown, path = ''): readonly (readonly [string, string])[] {
  const isOne = !isMembers(value) || isHidden(value) || Object.keys(value).length === 0;
  if (isOne || namedSecret(value) !== undefined) return [[path, textOf(value)]];
  return Object.entries(value).flatMap(([name, entry]) =>
    linesOf(entry, path === '' ? name : `${path}.${name}`),
  );
}

/** Path for people: `options` of a channel are not said. */
const called = (path: string): string => path.replace(/^options\./, '') || 'value';

/** Shows every member of a value. */
export function ValueLines({ value }: { readonly value: unknown }) {
  return (
    <dl className="facts">
      {linesOf(value).map(([path, text]) => (
        <Line key={path} path={path} text={text} />
      ))}
    </dl>
  );
}

function Line({ path, text }: { readonly path: string; readonly text: string }) {
  return (
    <>
      <dt>{called(path)}</dt>
      <dd className="mono">{text}</dd>
    </>
  );
}

/** Shows what differs between two values; `changed` adds members whose secrets differ, which look the same. */
export function Differences({
  before,
  after,
  changed = [],
}: {
  readonly before: unknown;
  readonly after: unknown;
  readonly changed?: readonly string[];
}) {
  const old = new Map(before === undefined ? [] : linesOf(before));
  const fresh = new Map(after === undefined ? [] : linesOf(after));
  const paths = [...new Set([...old.keys(), ...fresh.keys()])].filter(
    (path) => old.get(path) !== fresh.get(path) || changed.includes(path),
  );
  if (paths.length === 0) return <span className="muted small">No value differs.</span>;
  return (
    <ul className="changes">
      {paths.map((path) => {
        const [was, is] = [old.get(path), fresh.get(path)];
        return (
          <li key={path} className="small">
            <span className="muted">{called(path)}:</span> {was !== undefined && <del>{was}</del>}
            {was !== undefined && is !== undefined && ' → '}
            {is !== undefined && <ins>{is}</ins>}
          </li>
        );
      })}
    </ul>
  );
}

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
