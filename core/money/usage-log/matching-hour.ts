/** An hour that is looked into for a list. */

/** An hour that has records of a filter, and how many of them the sums know. */
export interface MatchingHour {
  readonly start: number;
  readonly calls: number;
}
