/**
 * The list with one more, made where there is none. For lists that mostly hold one: one that begins empty makes room for sixteen with its
 * first, and each call has several.
 */
export function appended<T>(list: T[] | undefined, one: T): T[] {
  if (list === undefined) return [one];
  list.push(one);
  return list;
}
