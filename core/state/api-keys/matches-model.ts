/** Decides which models a key may ask for. */
import { matchesName } from '../../sdk/name-patterns.ts';

/** Whether a model is among those that a key allows, as `matchesName` has it. No list allows every model, an empty one none. */
export function matchesModel(patterns: readonly string[] | undefined, model: string): boolean {
  return patterns === undefined || matchesName(patterns, model);
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

/**
 * The names and patterns that both lists allow. Of two patterns with stars, neither of which covers the other, only names count that begin and
 * end as both ask and are as long as these together; where one has several stars, none. So a name may be refused that both allow, and none is
 * allowed that one refuses.
 */
export function intersectPatterns(one: readonly string[], other: readonly string[]): readonly string[] {
  const both = new Set<string>();
  for (const pattern of one) {
    for (const second of other) {
      if (matchesModel([second], pattern)) both.add(pattern);
      else if (matchesModel([pattern], second)) both.add(second);
      else if (hasOneStar(pattern) && hasOneStar(second) && patternsOverlap(pattern, second)) {
        const longer = (a = '', b = ''): string => (a.length > b.length ? a : b);
        const start = longer(startOf(pattern), startOf(second));
        both.add(`${start}*${longer(endOf(pattern), endOf(second))}`);
      }
    }
  }
  return [...both];
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
