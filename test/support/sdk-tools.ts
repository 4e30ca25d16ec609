import { readFileSync } from 'node:fs';

/**
 * Returns the literals of `type` in the declarations of types whose names match, each once: `type: 'web_search' | 'web_search_2025_08_26'`. For
 * a type that has no such literal it is the names of its members, because they tell there which tool is meant.
 */
export function literalTypes(files: readonly string[], names: RegExp): readonly string[] {
  const found = new Set<string>();
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
      .replaceAll('\r', '')
      .replace(/^ *\/\*\*[^]*?\*\/$/gm, '');
    for (const { name, body } of interfacesIn(text)) {
      if (!names.test(name)) continue;
      const literals = /^\s*type\??: ((?:'[^']+'(?: \| )?)+);/m.exec(body)?.[1];
      if (literals !== undefined) for (const [, one = ''] of literals.matchAll(/'([^']+)'/g)) found.add(one);
      else if (!/^\s*(?:name|type)\??:/m.test(body))
        for (const [, member = ''] of body.matchAll(/^ {4}(\w+)\??:/gm)) found.add(member);
    }
  }
  return [...found];
}

interface Interface {
  /** With the namespaces around it. */
  readonly name: string;
  readonly body: string;
}

/** Finds interfaces by their indentation, which declarations that are generated keep to. */
function* interfacesIn(text: string): Generator<Interface> {
  const outer: { readonly indent: number; readonly name: string }[] = [];
  const lines = text.split('\n');
  for (const [index, line] of lines.entries()) {
    const [, indent = '', kind, name = ''] =
      /^( *)(?:export )?(?:declare )?(interface|namespace) (\w+)/.exec(line) ?? [];
    if (kind === undefined) continue;
    while ((outer.at(-1)?.indent ?? -1) >= indent.length) outer.pop();
    if (kind === 'namespace') {
      outer.push({ indent: indent.length, name });
      continue;
    }
    const end = lines.indexOf(`${indent}}`, index);
    yield {
      name: [...outer.map((one) => one.name), name].join('.'),
      body: lines.slice(index + 1, end < 0 ? index + 1 : end).join('\n'),
    };
  }
}
