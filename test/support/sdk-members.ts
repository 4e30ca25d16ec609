import { readFileSync } from 'node:fs';
import { parseAst } from 'vite';

/** A member of a request, as the types of an SDK declare it. */
export interface SdkMember {
  readonly name: string;
  /** The type that declares it, with the namespaces around it. */
  readonly owner: string;
}

interface Node {
  readonly type: string;
  readonly [name: string]: unknown;
}

interface Declaration {
  readonly file: string;
  readonly owner: string;
  readonly node: Node;
}

/**
 * Returns the members of all types that can be reached from those whose names match `roots`. A name that several types share counts for all
 * of those in the same file, else for all: the result may have too many members, never too few.
 */
export function sdkMembers(files: readonly string[], roots: RegExp): readonly SdkMember[] {
  const declarations = files.flatMap((file) => declaredIn(programOf(file), file, ''));
  const byName = Map.groupBy(declarations, ({ owner }) => lastName(owner));
  const reached = new Set(declarations.filter(({ owner }) => roots.test(lastName(owner))));
  const members: SdkMember[] = [];
  // A set goes on with what is added while it is walked.
  for (const { file, owner, node } of reached)
    for (const one of nodesIn(node)) {
      if (one.type === 'TSPropertySignature') members.push({ name: nameOf(one['key']), owner });
      const found = byName.get(referredName(one)) ?? [];
      const near = found.filter((other) => other.file === file);
      for (const other of near.length > 0 ? near : found) reached.add(other);
    }
  return members;
}

function programOf(file: string): unknown {
  return parseAst(readFileSync(file, 'utf8'), { lang: 'dts' }).body;
}

/** Returns the interfaces and type aliases, also those in namespaces. */
function declaredIn(value: unknown, file: string, outer: string): readonly Declaration[] {
  if (Array.isArray(value)) return value.flatMap((one: unknown) => declaredIn(one, file, outer));
  if (!isNode(value)) return [];
  const { type, id, body, declaration } = value;
  const owner = outer === '' ? nameOf(id) : `${outer}.${nameOf(id)}`;
  switch (type) {
    case 'ExportNamedDeclaration':
      return declaredIn(declaration, file, outer);
    case 'TSModuleDeclaration':
      return isNode(body) ? declaredIn(body['body'], file, owner) : [];
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
    case 'ClassDeclaration':
      return [{ file, owner, node: value }];
    default:
      return [];
  }
}

function* nodesIn(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const one of value) yield* nodesIn(one);
  if (!isNode(value)) return;
  yield value;
  for (const child of Object.values(value))
    if (typeof child === 'object' && child !== null) yield* nodesIn(child);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && 'type' in value;
}

/** Returns the name of the type that a node refers to; empty for any other node. */
function referredName({ type, typeName, expression }: Node): string {
  if (type === 'TSTypeReference') return nameOf(typeName);
  return type === 'TSInterfaceHeritage' ? nameOf(expression) : '';
}

/** Returns a name as it is written; of a qualified one the last part. */
function nameOf(value: unknown): string {
  if (!isNode(value)) return '';
  const { name, right, property, value: text } = value;
  if (typeof name === 'string') return name;
  if (typeof text === 'string') return text;
  return nameOf(right ?? property);
}

function lastName(owner: string): string {
  return owner.slice(owner.lastIndexOf('.') + 1);
}
