/** Decides which models a key may ask for. */
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
 * True when some model name fits both patterns. Takes time in proportion to their length: where both have stars, only their beginnings and
 * their ends can disagree, because the stars leave room for everything between these.
 */
export function patternsOverlap(one: string, other: string): boolean {
  const [oneStart, oneEnd] = [startOf(one), endOf(one)];
  const [otherStart, otherEnd] = [startOf(other), endOf(other)];
  if (oneStart === undefined || oneEnd === undefined) return matchesModel([other], one);
  if (otherStart === undefined || otherEnd === undefined) return matchesModel([one], other);
  return (
    (oneStart.startsWith(otherStart) || otherStart.startsWith(oneStart)) &&
    (oneEnd.endsWith(otherEnd) || otherEnd.endsWith(oneEnd))
  );
}

/**
 * True when a key with these allowed models may use one of the served ones. Both lists hold exact names and patterns with `*`. Without a
 * list of allowed models every served one may be used.
 */
export function mayUseSome(allowed: readonly string[] | undefined, served: readonly string[]): boolean {
  if (allowed === undefined) return true;
  return served.some((name) =>
    name.includes('*')
      ? allowed.some((pattern) => patternsOverlap(pattern, name))
      : matchesModel(allowed, name),
  );
}

/** Returns the text before the first star; undefined for a name without stars. */
function startOf(pattern: string): string | undefined {
  const star = pattern.indexOf('*');
  return star < 0 ? undefined : pattern.slice(0, star);
}

/** Returns the text behind the last star; undefined for a name without stars. */
function endOf(pattern: string): string | undefined {
  const star = pattern.lastIndexOf('*');
  return star < 0 ? undefined : pattern.slice(star + 1);
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
