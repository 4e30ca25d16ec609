/** An hour that is looked into for a list. */

/** An hour that has records of a filter, and how many records a look into it reads. */
export interface MatchingHour {
  readonly start: number;
  readonly records: number;
}
