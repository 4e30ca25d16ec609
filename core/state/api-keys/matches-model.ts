type Matcher = (model: string) => boolean;
const matchers = new WeakMap<readonly string[], Matcher>();

/**
 * Whether a model is among those that a key allows. `*` in a pattern stands for any text, also none; everything else
 * is compared exactly. No list allows every model, an empty one none.
 */
export function matchesModel(patterns: readonly string[] | undefined, model: string): boolean {
  if (patterns === undefined) return true;
  let matcher = matchers.get(patterns);
  if (matcher === undefined) matchers.set(patterns, (matcher = compile(patterns)));
  return matcher(model);
}

function compile(patterns: readonly string[]): Matcher {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')));
  const wild = patterns.filter((pattern) => pattern.includes('*')).map(compilePattern);
  return (model) => exact.has(model) || wild.some((matches) => matches(model));
}

/**
 * Taking the leftmost place for each part between two stars is enough: a later place never leaves more room for the
 * parts that follow. So nothing is tried twice, as a regular expression would.
 */
function compilePattern(pattern: string): Matcher {
  const parts = pattern.split('*');
  const start = parts.shift() ?? '';
  const end = parts.pop() ?? '';
  return (model) => {
    const limit = model.length - end.length;
    if (limit < start.length || !model.startsWith(start) || !model.endsWith(end)) return false;
    let position = start.length;
    for (const part of parts) {
      const found = model.indexOf(part, position);
      if (found === -1) return false;
      position = found + part.length;
    }
    return position <= limit;
  };
}
