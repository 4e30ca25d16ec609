/** Maps public names of models to the names of the provider. */
export type NameMap = Readonly<Record<string, string>>;

/** Returns the provider's name for a public name; undefined when the channel does not serve it. */
export type ModelNames = (model: string) => string | undefined;

/**
 * Returns the texts that match the `*`s of a pattern in a name; undefined when the name does not match. Each star but the last matches as
 * little as possible, so that there is no backtracking as in a regular expression.
 */
export function starsOf(pattern: string, name: string): readonly string[] | undefined {
  const [start = '', ...rest] = pattern.split('*');
  const end = rest.pop();
  if (end === undefined) return pattern === name ? [] : undefined;
  const limit = name.length - end.length;
  if (limit < start.length || !name.startsWith(start) || !name.endsWith(end)) return undefined;
  const stars: string[] = [];
  let position = start.length;
  for (const part of rest) {
    const found = name.indexOf(part, position);
    if (found < 0 || found + part.length > limit) return undefined;
    stars.push(name.slice(position, found));
    position = found + part.length;
  }
  stars.push(name.slice(position, limit));
  return stars;
}

/**
 * Parses the `models` of a channel: a list of names of the provider, or a map of public names to names of the provider. An exact name has
 * precedence over patterns, and patterns apply in their order. In a map the stars of the provider's name stand for those of the public name.
 */
export function modelNames(models: readonly string[] | NameMap): ModelNames {
  const pairs: readonly (readonly [string, string])[] = isNameList(models)
    ? models.map((name) => [name, name])
    : Object.entries(models);
  const exact = new Map(pairs.filter(([name]) => !name.includes('*')));
  const patterns = pairs.filter(([name]) => name.includes('*'));
  return (model) => {
    const known = exact.get(model);
    if (known !== undefined) return known;
    for (const [pattern, target] of patterns) {
      const stars = starsOf(pattern, model);
      if (stars === undefined) continue;
      let star = 0;
      return target.replaceAll('*', () => stars[star++] ?? '');
    }
    return undefined;
  };
}

/**
 * Returns the public names under which the `models` of a channel serve a model of the provider. Omits public names with more stars than the
 * provider's name, because they cannot be derived.
 */
export function publicNames(
  models: readonly string[] | NameMap,
): (upstreamModel: string) => readonly string[] {
  const upstreamOf = modelNames(models);
  if (isNameList(models)) return (name) => (upstreamOf(name) === undefined ? [] : [name]);
  const patterns = Object.entries(models).filter(
    ([name, target]) => name.includes('*') && starCount(name) === starCount(target),
  );
  return (upstreamModel) => {
    const names = new Set<string>();
    for (const [pattern, target] of patterns) {
      const stars = starsOf(target, upstreamModel);
      if (stars === undefined) continue;
      let star = 0;
      const name = pattern.replaceAll('*', () => stars[star++] ?? '');
      // An earlier entry may map the name to another model.
      if (upstreamOf(name) === upstreamModel) names.add(name);
    }
    return [...names];
  };
}

/** Returns the problem of a map of names, as the end of a sentence; undefined when the map is valid. */
export function namesProblem(models: readonly string[] | NameMap): string | undefined {
  if (isNameList(models)) return undefined;
  const bad = Object.entries(models).find(([name, target]) => starCount(target) > starCount(name));
  return bad === undefined
    ? undefined
    : `"${bad[1]}" has more stars than "${bad[0]}". Each star stands for the text of the same star in the public name`;
}

function starCount(name: string): number {
  return name.split('*').length - 1;
}

/** Returns true for a list of names, false for a map. */
export function isNameList<Other extends object>(
  models: readonly string[] | Other,
): models is readonly string[] {
  return Array.isArray(models);
}
