/** Whether some text fits both patterns, in which `*` stands for any text, also none. */
export function overlap(one: string, other: string): boolean {
  // The places in `other` at which what is left of both may begin, after each character of `one`.
  let places = withoutStars(new Set([0]), other);
  for (const character of one) {
    const next = new Set<number>();
    if (character === '*') {
      const first = [...places].reduce((least, place) => Math.min(least, place));
      for (let place = first; place <= other.length; place += 1) next.add(place);
    } else {
      for (const place of places) {
        if (other[place] === '*') next.add(place);
        else if (other[place] === character) next.add(place + 1);
      }
    }
    if (next.size === 0) return false;
    places = withoutStars(next, other);
  }
  return places.has(other.length);
}

/** The same places, and those behind stars that stand for nothing. */
function withoutStars(places: Set<number>, pattern: string): Set<number> {
  for (const place of places) if (pattern[place] === '*') places.add(place + 1);
  return places;
}
