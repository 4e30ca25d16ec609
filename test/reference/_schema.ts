/** Descriptions of a schema's members, for pages. */
import { z } from 'zod';

/** One member that a user can set. */
export interface OptionRow {
  /** Path with dots; `*` stands for any name, `[]` for each entry of a list. */
  readonly path: string;
  readonly type: string;
  /** As JSON. Absent: none, or one that depends on the environment. */
  readonly default?: string;
  readonly text: string;
  readonly isRequired: boolean;
}

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Node | boolean;
}

/** Returns the members of a schema in order, those of objects within objects after them. */
export function optionRows(
  schema: z.ZodType,
  describe: (path: string) => string | undefined = () => undefined,
): readonly OptionRow[] {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as Node;
  return rowsOf(root, '', describe);
}

function rowsOf(
  node: Node,
  above: string,
  describe: (path: string) => string | undefined,
): readonly OptionRow[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, one]) => {
    const path = above === '' ? name : `${above}.${name}`;
    const text = one.description ?? describe(path) ?? '';
    const own: OptionRow = {
      path,
      type: typeOf(one),
      ...(one.default === undefined || isGroup(one) || saysDefault(text)
        ? {}
        : { default: JSON.stringify(one.default) }),
      text,
      isRequired: node.required?.includes(name) === true,
    };
    const within = partsOf(one, path).flatMap(([at, part]) => rowsOf(part, at, describe));
    // A group of settings is no value of its own.
    return isGroup(one) && text === '' ? within : [own, ...unique(within)];
  });
}

/** Objects whose members can be set, also where they are one of several forms, an entry of a list or a value by name; with their paths. */
function partsOf(node: Node, path: string): readonly (readonly [string, Node])[] {
  const { anyOf = [], oneOf = [], items, additionalProperties } = node;
  return [
    ...(node.properties === undefined ? [] : [[path, node] as const]),
    ...[...anyOf, ...oneOf].flatMap((form) => partsOf(form, path)),
    ...(items === undefined ? [] : partsOf(items, `${path}[]`)),
    ...(typeof additionalProperties === 'object' ? partsOf(additionalProperties, `${path}.*`) : []),
  ];
}

function isGroup({ properties }: Node): boolean {
  return properties !== undefined;
}

function saysDefault(text: string): boolean {
  return /\bdefault\b/i.test(text);
}

/** Forms of one option may share members: each is one row with all its types. */
function unique(rows: readonly OptionRow[]): readonly OptionRow[] {
  const found = new Map<string, OptionRow>();
  for (const row of rows) {
    const known = found.get(row.path);
    const types = known === undefined ? [row.type] : [...new Set([...known.type.split(', '), row.type])];
    found.set(row.path, { ...(known ?? row), type: types.join(', ') });
  }
  return [...found.values()];
}

function typeOf(node: Node): string {
  const forms = node.anyOf ?? node.oneOf;
  if (forms !== undefined) return [...new Set(forms.map(typeOf))].join(' or ');
  if (node.enum !== undefined) return node.enum.map((one) => `\`${JSON.stringify(one)}\``).join(', ');
  if (node.const !== undefined) return `\`${JSON.stringify(node.const)}\``;
  switch (node.type) {
    case 'integer':
    case 'number':
      return `${node.type}${rangeOf(node)}`;
    case 'array':
      return `list of ${plural(typeOf(node.items ?? {}))}`;
    case 'object':
      return node.properties === undefined ? 'values by name' : 'object';
    case undefined:
      return 'value';
    default:
      return node.type;
  }
}

function plural(type: string): string {
  return /^(?:string|number|integer|object|value)$/.test(type) ? `${type}s` : type;
}

function rangeOf({ minimum, maximum }: Node): string {
  const isOpen = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER;
  const from = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : shown(minimum);
  if (from === undefined) return isOpen ? '' : ` up to ${shown(maximum)}`;
  return isOpen ? ` from ${from}` : ` from ${from} to ${shown(maximum)}`;
}

function shown(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 6 });
}
