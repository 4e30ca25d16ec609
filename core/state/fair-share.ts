/** Divides a bounded store fairly among those who fill it. */

/**
 * Returns the most that each may keep so that all together keep at most `most`: those who have less keep all, and what is left is divided among
 * the others. `counts` is how much each has. 0 where there are more of them than places.
 */
export function fairShare(counts: Iterable<number>, most: number): number {
  const sorted = [...counts].toSorted((one, other) => one - other);
  let left = most;
  for (const [index, count] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (count > share) return share;
    left -= count;
  }
  return Number.POSITIVE_INFINITY;
}

/**
 * Returns the items that are too many: the oldest of whoever has more than a fair share, until `most` are left. `items` are in order of age, the
 * oldest first. `ownerOf` names who an item belongs to: first the larger group, such as an organisation, then the one in it.
 */
export function surplus<Item>(
  items: readonly Item[],
  most: number,
  ownerOf: (item: Item) => readonly [group: string, owner: string],
): Item[] {
  if (items.length <= most) return [];
  const groups = Map.groupBy(items, (item) => ownerOf(item)[0]);
  const share = fairShare(
    [...groups.values()].map((list) => list.length),
    most,
  );
  const gone = new Set<Item>();
  for (const group of groups.values()) {
    if (group.length <= share) continue;
    const owners = Map.groupBy(group, (item) => ownerOf(item)[1]);
    const own = fairShare(
      [...owners.values()].map((list) => list.length),
      share,
    );
    for (const list of owners.values())
      for (const item of list.slice(0, Math.max(0, list.length - own))) gone.add(item);
  }
  // What the division does not settle to the last place: the oldest of all go, and shares stay as large as they can be.
  let left = items.length - gone.size;
  for (const item of items) {
    if (left <= most) break;
    if (!gone.has(item)) {
      gone.add(item);
      left -= 1;
    }
  }
  // Places that rounding leaves free go to the newest.
  for (const item of items.toReversed()) {
    if (left >= most) break;
    if (gone.delete(item)) left += 1;
  }
  return [...gone];
}
