/** Values of the configuration for people: a line for each member, and what differs between two of them. */
import { called, linesOf } from './value-text.ts';

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
