/** Measures how long calls wait before the process handles them, and distinguishes load from a single pause. */

/** Interval between two looks at the event loop, in milliseconds. */
export const lookEvery = 50;

/**
 * Time over which waits must not get shorter before calls are refused, because they do after a pause, and time without long waits after which
 * calls are taken again, in milliseconds.
 */
const standing = 250;

/** Share of the limit that a call may have waited while late calls are refused, so that those which are taken are served soon. */
const strictShare = 0.25;

/** Times of a new connection, for its first call. */
export interface Arrival {
  /**
   * Time at which the primary process accepted the connection, and time at which this process received it, in milliseconds of its clock. Not used for
   * connections that have been open for a while, because their calls have just arrived.
   */
  readonly acceptedAt: number;
  readonly openedAt: number;
}

/**
 * Waits of calls. A call waits in the primary process as a new connection, whose time is known, or in the buffer of a connection while the
 * event loop is busy. How late the timer of the looks is when a call is read is a lower bound of the latter: the poll that found the call
 * returned before the timer was due.
 *
 * Calls are late when every look finds a wait above the limit and the waits do not get shorter. This is the rule of CoDel, which drops from
 * a queue that stands and not from one that drains, such as after one large request. It ends when no call has waited long for a while.
 */
export class CallWaits {
  readonly #most: number;
  readonly #now: () => number;
  #lookedAt: number;
  #lookedBefore: number;
  /** Shortest and longest wait of calls on new connections since the last look. */
  #shortest = Infinity;
  #longest = 0;
  /** Time at which the last call was read, and the longest pause before a call since the last check. */
  #notedAt: number;
  #pause = 0;
  /** Wait of the last of the calls on new connections, and whether one came since the last look. */
  #latest = 0;
  #hasNoted = false;
  /** A wait above the limit, since which all looks found one; while late calls are refused, the last one that was too long. */
  #long: { readonly at: number; readonly wait: number } | undefined;
  #wait = 0;
  #isStanding = false;

  /** `most`: limit of waits in milliseconds. `now` returns milliseconds. */
  constructor(most: number, now: () => number) {
    this.#most = most;
    this.#now = now;
    this.#lookedAt = this.#lookedBefore = this.#notedAt = now();
  }

  /** Begins to measure. */
  begin(): void {
    this.#lookedAt = this.#lookedBefore = this.#notedAt = this.#now();
  }

  /** Milliseconds that calls waited at least when it was last looked. */
  get wait(): number {
    return this.#wait;
  }

  /** True while calls that have waited are to be refused. */
  get isStanding(): boolean {
    return this.#isStanding;
  }

  /**
   * Notes a call that is read now; `arrival` belongs to a connection whose first call it is. One turn of the event loop reads calls as long as
   * they come, for seconds under load, so that it is judged while it lasts.
   */
  note(arrival: Arrival | undefined): void {
    const now = this.#now();
    // A single long pause between two calls, for example while a large body is parsed, is not load.
    this.#pause = Math.max(this.#pause, now - this.#notedAt);
    this.#notedAt = now;
    const late = now - this.#lookedAt - lookEvery - this.#pause;
    if (late > this.#most && !this.#isStanding) this.#judge(now, late);
    if (arrival === undefined) return;
    const wait = arrival.openedAt < this.#lookedBefore ? 0 : now - arrival.acceptedAt;
    this.#shortest = Math.min(this.#shortest, wait);
    this.#longest = Math.max(this.#longest, wait);
    this.#latest = wait;
    this.#hasNoted = true;
  }

  /**
   * True if a call that is read now is to be refused while {@link isStanding}: it is read late, or new connections wait. A worker gets one of
   * these in each turn of its event loop, so that they wait until turns are short, whatever the calls are of which these consist.
   */
  get isLate(): boolean {
    return Math.max(this.#now() - this.#lookedAt - lookEvery, this.#latest) > this.#most * strictShare;
  }

  look(): void {
    const now = this.#now();
    const late = Math.max(0, now - this.#lookedAt - lookEvery);
    const longest = Math.max(late, this.#longest);
    this.#wait = this.#hasNoted ? Math.max(late, this.#shortest) : late;
    if (!this.#hasNoted) this.#latest = 0;
    this.#hasNoted = false;
    this.#shortest = Infinity;
    this.#longest = 0;
    this.#lookedBefore = this.#lookedAt;
    this.#lookedAt = this.#notedAt = now;
    this.#pause = 0;
    if (this.#isStanding) this.#review(now, longest);
    else this.#judge(now, this.#wait);
  }

  #judge(now: number, wait: number): void {
    if (wait <= this.#most) this.#long = undefined;
    else if (this.#long === undefined) this.#long = { at: now, wait };
    else if (now - this.#long.at >= standing) {
      this.#isStanding = wait >= this.#long.wait;
      this.#long = { at: now, wait };
    }
  }

  #review(now: number, longest: number): void {
    if (longest > this.#most * strictShare) this.#long = { at: now, wait: longest };
    else if (this.#long === undefined || now - this.#long.at >= standing) {
      this.#isStanding = false;
      this.#long = undefined;
    }
  }
}
