/** How something stands that the gateway keeps, and cleans up by a rule. */
export interface Kept {
  /** A name for metrics: lower-case words with hyphens. */
  readonly what: string;
  /** What is kept for how long, as a sentence for the operator. */
  readonly rule: string;
  /** How many there are, where that is known. */
  readonly rows?: number;
  /** For how many seconds the oldest that should have gone, or the oldest work that should have been done, is overdue. */
  readonly overdueSeconds: number;
  /** What the operator should know or do, as a sentence. */
  readonly warning?: string;
}

/** What this process knows of everything that is kept. Whoever keeps something says how it stands. */
export class Upkeep {
  readonly #kept = new Map<string, Kept>();

  set(kept: Kept): void {
    this.#kept.set(kept.what, kept);
  }

  /** All that is kept, by name. */
  all(): readonly Kept[] {
    return [...this.#kept.values()].toSorted((one, other) => (one.what < other.what ? -1 : 1));
  }

  /** What of all that is kept there is a warning about. */
  get warned(): readonly (Kept & { readonly warning: string })[] {
    return this.all().flatMap((kept) =>
      kept.warning === undefined ? [] : [{ ...kept, warning: kept.warning }],
    );
  }
}
