/** Decides which models a key may use. */
import { matchesName } from './name-patterns.ts';

/**
 * Returns true for a model that a key allows. It compares names and patterns as `matchesName` does, and also takes undefined: without a list
 * every model is allowed. An empty list allows none.
 *
 * @example
 * if (!matchesModel(call.get(caller)?.models, call.model)) throw new GatewayError('model_not_allowed', 'This key has no access to the model.');
 */
export function matchesModel(patterns: readonly string[] | undefined, model: string): boolean {
  return patterns === undefined || matchesName(patterns, model);
}

/**
 * Returns true when some model name fits both patterns. Takes time in proportion to their length: where both have stars, only their beginnings and
 * their ends can disagree, because the stars leave room for everything between these.
 *
 * @example
 * const isShared = patternsOverlap('gpt-*', 'gpt-5-*');
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
 * Returns true when a key with these allowed models may use one of the served ones. Both lists hold exact names and patterns with `*`. Without a
 * list of allowed models every served one may be used.
 *
 * @example
 * if (!mayUseSome(key.models, ['gpt-5-*'])) throw new GatewayError('model_not_allowed', 'No model of this channel.');
 */
export function mayUseSome(allowed: readonly string[] | undefined, served: readonly string[]): boolean {
  if (allowed === undefined) return true;
  return served.some((name) =>
    name.includes('*')
      ? allowed.some((pattern) => patternsOverlap(pattern, name))
      : matchesModel(allowed, name),
  );
}

/** Two lists of patterns with stars may have as many in common as the product of their lengths, and a third list multiplies them again. */
const mostPatterns = 1_000;

/**
 * Returns the names and patterns that both lists allow. Of two patterns with stars, neither of which covers the other, only names count
 * that begin and end as both ask and are as long as these together; where one has several stars, none. At most 1,000 are returned. So a
 * name may be refused that both allow, and none is allowed that one refuses.
 *
 * Each call returns a new list, which `matchesModel` compiles again. Keep one result per key, in a WeakMap.
 *
 * @example
 * const narrowed = new WeakMap<ApiKey, ApiKey>();
 * const narrow = (key: ApiKey): ApiKey => {
 *   const known = narrowed.get(key) ?? { ...key, models: intersectPatterns(key.models ?? ['*'], options.models) };
 *   narrowed.set(key, known);
 *   return known;
 * };
 */
export function intersectPatterns(one: readonly string[], other: readonly string[]): readonly string[] {
  const both = new Set<string>();
  // Each in a list of its own, which is compiled once.
  const alone = (list: readonly string[]) => list.map((pattern) => [pattern] as const);
  const [ones, others] = [alone(one), alone(other)];
  for (const first of ones) {
    if (both.size >= mostPatterns) break;
    for (const second of others) {
      const [a, b] = [first[0], second[0]];
      if (matchesName(second, a)) both.add(a);
      else if (matchesName(first, b)) both.add(b);
      else if (hasOneStar(a) && hasOneStar(b) && patternsOverlap(a, b)) both.add(between(a, b));
    }
  }
  return [...both].slice(0, mostPatterns);
}

/** Returns the names that begin and end as two patterns with one star each ask. */
function between(one: string, other: string): string {
  const longer = (a = '', b = ''): string => (a.length > b.length ? a : b);
  return `${longer(startOf(one), startOf(other))}*${longer(endOf(one), endOf(other))}`;
}

function hasOneStar(pattern: string): boolean {
  return pattern.indexOf('*') === pattern.lastIndexOf('*') && pattern.includes('*');
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
