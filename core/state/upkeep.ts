/** How something stands that the gateway keeps, and cleans up by a rule. */
export interface Kept {
  /** A name for metrics: lower-case words with hyphens. */
  readonly what: string;
  /** Kind and retention of the data, as a sentence for the operator. */
  readonly rule: string;
  /** How many there are, where that is known. */
  readonly rows?: number;
  /** For how many seconds the oldest that should have gone, or the oldest work that should have been done, is overdue. */
  readonly overdueSeconds: number;
  /** Sentence about what the operator should know or do. */
  readonly warning?: string;
}

/** State of all stored data, as this process knows it. Each part that stores data reports its own state. */
export class Upkeep {
  readonly #kept = new Map<string, Kept>();

  set(kept: Kept): void {
    this.#kept.set(kept.what, kept);
  }

  /** All that is kept, by name. */
  all(): readonly Kept[] {
    return [...this.#kept.values()].toSorted((one, other) => (one.what < other.what ? -1 : 1));
  }

  /** Returns the stored data with a warning. */
  get warned(): readonly (Kept & { readonly warning: string })[] {
    return this.all().flatMap((kept) =>
      kept.warning === undefined ? [] : [{ ...kept, warning: kept.warning }],
    );
  }
}
