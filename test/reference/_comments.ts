/** Doc comments of members in source text, which oxfmt has indented: what `/** … *\/` stands above a member describes it. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Comments by the path of their member, such as `poll.first`. */
export type Comments = ReadonlyMap<string, string>;

const member = /^( *)(?:readonly )?['"]?([\w-]+)['"]?\??:/;

/** Returns the comments of the members in a block of source, whatever it begins with. */
export function commentsOf(block: string): Comments {
  const found = new Map<string, string>();
  const open: { readonly indent: number; readonly name: string }[] = [];
  let comment: string[] | undefined;
  let isInside = false;
  for (const line of block.split('\n')) {
    const text = line.trim();
    if (isInside || text.startsWith('/**')) {
      if (!isInside) comment = [];
      comment?.push(
        text
          .replace(/^\/\*\*/, '')
          .replace(/\*\/$/, '')
          .replace(/^\* ?/, '')
          .trim(),
      );
      isInside = !text.endsWith('*/');
      continue;
    }
    // Another declaration.
    if (/^\w/.test(line)) open.length = 0;
    const [, spaces, name] = member.exec(line) ?? [];
    if (spaces !== undefined && name !== undefined) {
      while (open.length > 0 && open.at(-1)!.indent >= spaces.length) open.pop();
      open.push({ indent: spaces.length, name });
      if (comment !== undefined) found.set(open.map((one) => one.name).join('.'), sentenceOf(comment));
    }
    if (text !== '' && !text.startsWith('//')) comment = undefined;
  }
  return found;
}

/** Returns the block of a declaration at the left margin, such as `export interface ModelTraits`. */
export function blockOf(source: string, beginning: string): string {
  const from = source.indexOf(`\n${beginning}`);
  if (from < 0) throw new Error(`No "${beginning}" in the source.`);
  const to = source.slice(from + 1).search(/\n[})\]]/);
  return source.slice(from + 1, to < 0 ? undefined : from + 1 + to);
}

/** Returns the doc comment above a declaration at the left margin; undefined where there is none. */
export function commentAbove(source: string, beginning: string): string | undefined {
  const from = source.indexOf(`\n${beginning}`);
  const above = source.slice(0, from + 1);
  const start = above.lastIndexOf('\n/**');
  if (from < 0 || start < 0 || !/\*\/\s*$/.test(above)) return undefined;
  return commentsOf(`${above.slice(start + 1)}here: there`).get('here');
}

/** Returns the source of a plugin or channel: of its one file, or of those of its folder, its options first. */
export function sourcesOf(path: string): readonly string[] {
  if (statSync(path).isFile()) return [readFileSync(path, 'utf8')];
  const first = ['options.ts', 'index.ts'];
  const files = readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('web'))
    .map((entry) => join(entry.parentPath, entry.name));
  const rank = (file: string): number =>
    (first.indexOf(basename(file)) + first.length + 1) % (first.length + 1);
  return files.toSorted((one, other) => rank(one) - rank(other)).map((file) => readFileSync(file, 'utf8'));
}

/**
 * Returns a function that finds the comment of an option in the schemas of these files. A part of the options may stand in a declaration of
 * its own: then the end of the path finds it.
 */
export function optionComments(sources: readonly string[]): (path: string) => string | undefined {
  // Members of schemas end with a comma, those of types with a semicolon.
  const files = sources.map((source) => commentsOf(source.replaceAll(/^ .*[^)];$/gm, '')));
  return (path) => {
    const names = path.split('.');
    for (let first = 0; first < names.length; first += 1) {
      const wanted = names.slice(first).join('.');
      for (const file of files)
        for (const [name, text] of file) if (name === wanted || name === `options.${wanted}`) return text;
    }
    return undefined;
  };
}

/** An example of a comment is code for an editor. */
function sentenceOf(lines: readonly string[]): string {
  const end = lines.findIndex((line) => line.startsWith('@'));
  return lines
    .slice(0, end < 0 ? undefined : end)
    .join(' ')
    .replaceAll(/\{@link ([^}|]+)(?:\|[^}]*)?\}/g, '`$1`')
    .replaceAll(/ +/g, ' ')
    .trim();
}
