/** A form made from a JSON Schema. Options that are not set are added by name, because a schema has many. */
import { useState, type FunctionComponent } from 'react';
import {
  isMembers,
  shapeOf,
  startOf,
  titleOf,
  wayOf,
  waysOf,
  type JsonSchema,
  type Members,
  type Shape,
} from './json-schema.ts';
import { AddButton, Box, RemoveButton } from './schema-box.tsx';
import {
  ChoiceLeaf,
  hintOf,
  JsonLeaf,
  LinesLeaf,
  NumberLeaf,
  SecretLeaf,
  TextLeaf,
  type LeafProps,
} from './schema-leaves.tsx';

/** Problems by the paths of the values that they are about: `timeouts.idle`. */
export type PathProblems = Readonly<Record<string, string>>;

/** A part of the form. */
interface PartProps {
  readonly label: string;
  /** Empty for the whole value. */
  readonly path: string;
  readonly schema: JsonSchema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly problems: PathProblems;
}

const leaves: Readonly<Partial<Record<Shape, FunctionComponent<LeafProps>>>> = {
  secret: SecretLeaf,
  text: TextLeaf,
  number: NumberLeaf,
  flag: ChoiceLeaf,
  choice: ChoiceLeaf,
  lines: LinesLeaf,
  json: JsonLeaf,
};

const parts: Readonly<Partial<Record<Shape, FunctionComponent<PartProps>>>> = {
  members: MembersPart,
  table: TablePart,
  list: ListPart,
  ways: WaysPart,
};

/** Draws a value as its schema wants it. */
export function SchemaPart(props: PartProps) {
  const { label, path, schema, value, onChange, problems } = props;
  const shape = shapeOf(schema);
  const Part = parts[shape];
  if (Part !== undefined) return <Part {...props} />;
  const Leaf = leaves[shape] ?? JsonLeaf;
  return (
    <Leaf
      label={label}
      schema={schema}
      value={value}
      onChange={onChange}
      problem={problemAt(problems, path)}
    />
  );
}

/** Returns the problem of a value: its own, or the first one of its members. */
function problemAt(problems: PathProblems, path: string): string | undefined {
  return problems[path] ?? Object.entries(problems).find(([other]) => other.startsWith(`${path}.`))?.[1];
}

const below = (path: string, name: string | number): string =>
  path === '' ? String(name) : `${path}.${name}`;

/** An object: the options that are set or wanted, and a choice of the others. */
function MembersPart(props: PartProps) {
  const { label, schema, path, problems } = props;
  return (
    <Box label={label} hint={undefined} problem={problems[path]}>
      <MemberFields {...props} wanted={schema.required ?? []} />
    </Box>
  );
}

/** The options of an object. `wanted` are shown though they are not set. */
export function MemberFields({
  label,
  path,
  schema,
  value,
  onChange,
  problems,
  wanted,
}: PartProps & { readonly wanted: readonly string[] }) {
  const properties = schema.properties ?? {};
  const members: Members = isMembers(value) ? value : {};
  const [added, setAdded] = useState<readonly string[]>([]);
  const wrong = Object.keys(problems).flatMap((one) =>
    path === '' || one.startsWith(`${path}.`)
      ? [one.slice(path === '' ? 0 : path.length + 1).split('.')[0] ?? '']
      : [],
  );
  const names = [...new Set([...wanted, ...Object.keys(members), ...added, ...wrong])].filter(
    (name) => properties[name] !== undefined,
  );
  const others = Object.keys(properties).filter((name) => !names.includes(name));
  const set = (name: string, member: unknown): void => onChange({ ...members, [name]: member });
  return (
    <>
      {names.map((name) => (
        <div key={name} className="member">
          <SchemaPart
            label={name}
            path={below(path, name)}
            schema={properties[name] ?? {}}
            value={members[name]}
            onChange={(member) => set(name, member)}
            problems={problems}
          />
          {!wanted.includes(name) && (
            <RemoveButton
              what={name}
              onRemove={() => {
                setAdded(added.filter((one) => one !== name));
                const { [name]: _, ...rest } = members;
                onChange(rest);
              }}
            />
          )}
        </div>
      ))}
      {others.length > 0 && (
        <select
          aria-label={`Add an option of ${label}`}
          className="add-option"
          value=""
          onChange={({ target }) => {
            setAdded([...added, target.value]);
            const start = startOf(properties[target.value] ?? {});
            if (start !== undefined) set(target.value, start);
          }}
        >
          <option value="">Add an option…</option>
          {others.map((name) => (
            <option key={name} value={name}>
              {name}
              {properties[name]?.description === undefined ? '' : `: ${properties[name].description}`}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

/** Values by names of one's choice. */
function TablePart({ label, path, schema, value, onChange, problems }: PartProps) {
  const inner = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {};
  // The rows, not the object: two may have one name while it is typed.
  const [rows, setRows] = useState(() => Object.entries(isMembers(value) ? value : {}));
  const change = (next: typeof rows): void => {
    setRows(next);
    onChange(Object.fromEntries(next.filter(([name]) => name !== '')));
  };
  return (
    <Box label={label} hint={hintOf(schema)} problem={problems[path]}>
      {rows.map(([name, entry], index) => (
        // Rows have no id; their names change while they are typed.
        <div key={index} className="member">
          <div className="table-row">
            <TextLeaf
              label={`Name ${index + 1}`}
              schema={{}}
              value={name}
              problem={undefined}
              onChange={(typed) => change(rows.with(index, [String(typed), entry]))}
            />
            <SchemaPart
              label={`Value ${index + 1}`}
              path={below(path, name)}
              schema={inner}
              value={entry}
              problems={problems}
              onChange={(changed) => change(rows.with(index, [name, changed]))}
            />
          </div>
          <RemoveButton what={`${label} ${index + 1}`} onRemove={() => change(rows.toSpliced(index, 1))} />
        </div>
      ))}
      <AddButton label={label} onAdd={() => setRows([...rows, ['', startOf(inner)]])} />
    </Box>
  );
}

/** Fields for a list of values. */
function ListPart({ label, path, schema, value, onChange, problems }: PartProps) {
  const inner = schema.items ?? {};
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  // Each with a number of its own, so that the fields of the others stay when one is removed.
  const [ids, setIds] = useState(() => entries.map((_, index) => index));
  const [next, setNext] = useState(entries.length);
  return (
    <Box label={label} hint={hintOf(schema)} problem={problems[path]}>
      {entries.map((entry, index) => (
        <div key={ids[index] ?? index} className="member">
          <SchemaPart
            label={`${label} ${index + 1}`}
            path={below(path, index)}
            schema={inner}
            value={entry}
            problems={problems}
            onChange={(changed) => onChange(entries.with(index, changed))}
          />
          <RemoveButton
            what={`${label} ${index + 1}`}
            onRemove={() => {
              setIds(ids.toSpliced(index, 1));
              onChange(entries.toSpliced(index, 1));
            }}
          />
        </div>
      ))}
      <AddButton
        label={label}
        onAdd={() => {
          setIds([...ids, next]);
          setNext(next + 1);
          onChange([...entries, startOf(inner) ?? '']);
        }}
      />
    </Box>
  );
}

/** A value that may have one of several forms. */
function WaysPart(props: PartProps) {
  const { label, schema, value, onChange, path, problems } = props;
  const ways = waysOf(schema);
  const [way, setWay] = useState(() => wayOf(ways, value));
  const chosen = ways[way] ?? {};
  return (
    <div className="ways">
      <select
        aria-label={`Kind of ${label}`}
        value={way}
        onChange={({ target }) => {
          setWay(Number(target.value));
          onChange(startOf(ways[Number(target.value)] ?? {}));
        }}
      >
        {ways.map((one, index) => (
          <option key={`${index} ${titleOf(one)}`} value={index}>
            {titleOf(one)}
          </option>
        ))}
      </select>
      {chosen.const === undefined ? (
        <SchemaPart
          {...props}
          key={way}
          schema={
            chosen.description === undefined && schema.description !== undefined
              ? { ...chosen, description: schema.description }
              : chosen
          }
        />
      ) : (
        <div className="field">
          <span className="label">{label}</span>
          {problems[path] !== undefined && <span className="problem">{problems[path]}</span>}
        </div>
      )}
    </div>
  );
}
