/** Lists of names and of patterns with `*`, as operators write them. */

type Matcher = (name: string) => boolean;
const matchers = new WeakMap<readonly string[], Matcher>();

/**
 * Returns true when a name is one of the patterns, or has any text, also none, in place of their `*`. Everything else is compared exactly.
 * Takes time in proportion to the patterns and the name. What a list is compiled to is kept with the list: pass the same one each time.
 *
 * @example
 * if (!matchesName(options.models, call.model)) return next(call);
 */
export function matchesName(patterns: readonly string[], name: string): boolean {
  let matcher = matchers.get(patterns);
  if (matcher === undefined) matchers.set(patterns, (matcher = compile(patterns)));
  return matcher(name);
}

function compile(patterns: readonly string[]): Matcher {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')));
  const wild = patterns.filter((pattern) => pattern.includes('*')).map(compilePattern);
  return (name) => exact.has(name) || wild.some((matches) => matches(name));
}

/**
 * Compiles a pattern. The matcher takes the leftmost place for each part between two stars, because a later place never
 * leaves more room for the parts that follow. So it tries nothing twice, as a regular expression would.
 */
function compilePattern(pattern: string): Matcher {
  const parts = pattern.split('*');
  const start = parts.shift() ?? '';
  const end = parts.pop() ?? '';
  return (name) => {
    const limit = name.length - end.length;
    if (limit < start.length || !name.startsWith(start) || !name.endsWith(end)) return false;
    let position = start.length;
    for (const part of parts) {
      const found = name.indexOf(part, position);
      if (found === -1) return false;
      position = found + part.length;
    }
    return position <= limit;
  };
}
