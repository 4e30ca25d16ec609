import { Instrumenter } from '@stryker-mutator/instrumenter';

/** One small change to the product's code that a test should notice. */
export interface Mutant {
  /** Number of the mutant within one instrumentation. */
  readonly id: string;
  /** Path from the root of the repository. */
  readonly file: string;
  /** First line of the replaced code, beginning at 1. */
  readonly line: number;
  /** The trimmed source line. */
  readonly source: string;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
}

/** A file of the product. */
export interface SourceFile {
  /** Path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

/** Source files in which every mutant stands beside the original code, and the mutants. */
export interface Instrumented {
  readonly files: readonly SourceFile[];
  readonly mutants: readonly Mutant[];
}

/** Module in the root of an instrumented tree that says which mutant is active. */
export const switchFile = 'mutant-switch.js';

/** Minimal view of a syntax node: Babel's own types need packages that are not installed. */
interface Node {
  readonly type: string;
  readonly value?: unknown;
  readonly name?: string;
  readonly callee?: Node;
  readonly object?: Node;
  readonly property?: Node;
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
}

interface NodePath {
  readonly node: Node;
  readonly parentPath: NodePath | null;
}

/**
 * Adds all mutants to the given files. The instrumented code asks `mutant-switch.js` in the root of the tree which mutant is active, because
 * tests start gateways with an empty environment, where a variable would not arrive.
 */
export async function instrument(files: readonly SourceFile[]): Promise<Instrumented> {
  const result = await new Instrumenter(silent).instrument(
    files.map(({ path, text }) => ({ name: path, content: text, mutate: true })),
    { plugins: null, ignorers: [prose], excludedMutations: [], noHeader: true },
  );
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  return {
    files: result.files.map(({ name, content }) => ({ path: name, text: withSwitch(name, content) })),
    mutants: result.mutants
      .filter(({ status }) => status !== 'Ignored')
      .map(({ id, fileName, location, mutatorName, replacement }) => ({
        id,
        file: fileName,
        line: location.start.line + 1,
        source: texts.get(fileName)?.split('\n')[location.start.line]?.trim() ?? '',
        mutator: mutatorName,
        original: cut(texts.get(fileName) ?? '', location),
        replacement,
      })),
  };
}

/** Adds the import of the switch as the last statement: imports are hoisted, and comments at the head of a file stay there. */
function withSwitch(path: string, text: string): string {
  if (!text.includes('stryMutAct_9fa48')) return text;
  const up = '../'.repeat(path.split('/').length - 1) || './';
  return `${text}\nimport { isActive as stryMutAct_9fa48, cover as stryCov_9fa48 } from '${up}${switchFile}';\n`;
}

interface Position {
  readonly line: number;
  readonly column: number;
}

/** Returns the code between two positions; lines begin at 0. */
function cut(text: string, { start, end }: { readonly start: Position; readonly end: Position }): string {
  const lines = text.split('\n').slice(start.line, end.line + 1);
  const last = lines.length - 1;
  lines[last] = lines[last]?.slice(0, end.column) ?? '';
  lines[0] = lines[0]?.slice(start.column) ?? '';
  return lines.join('\n');
}

/**
 * Leaves sentences for people as they are: the text of errors, log lines and descriptions of settings. A test that repeats each of them
 * word by word would find no mistake.
 */
const prose = {
  shouldIgnore(path: object): string | undefined {
    // The instrumenter hands over Babel's paths, and types them as empty objects.
    const { node, parentPath } = path as NodePath;
    return isSentence(node) && isForPeople(parentPath) ? 'a sentence for people' : undefined;
  },
};

function isSentence({ type, value, quasis }: Node): boolean {
  if (type === 'StringLiteral') return String(value).includes(' ');
  return type === 'TemplateLiteral' && quasis?.some(({ value: { raw } }) => raw.includes(' ')) === true;
}

/** True inside the arguments of `new SomeError(…)`, `.describe(…)` and a logger's methods. */
function isForPeople(path: NodePath | null): boolean {
  for (let up = path; up !== null; up = up.parentPath) {
    const { type, callee } = up.node;
    if (type.includes('Function') || type.endsWith('Statement')) return type === 'ThrowStatement';
    if (type === 'NewExpression' && callee?.name?.endsWith('Error') === true) return true;
    if (type === 'CallExpression' && isTalk(callee)) return true;
  }
  return false;
}

function isTalk(callee: Node | undefined): boolean {
  if (callee?.property?.name === 'describe') return true;
  const receiver = callee?.object?.property?.name ?? callee?.object?.name;
  return receiver === 'log' || receiver === 'logger';
}

const no = (): boolean => false;
const nothing = (): void => {};
const silent = {
  isTraceEnabled: no,
  isDebugEnabled: no,
  isInfoEnabled: no,
  isWarnEnabled: no,
  isErrorEnabled: no,
  isFatalEnabled: no,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
};
