/** Slots that a process holds in the shared store, by their ids. Which of them calls use does not matter: they are all alike. */
export class HeldSlots {
  readonly #ids = new Map<string, Set<string>>();

  add(subject: string, ids: readonly string[]): void {
    const held = this.#ids.get(subject) ?? new Set<string>();
    this.#ids.set(subject, held);
    for (const id of ids) held.add(id);
  }

  /** Takes so many slots of the subject out, those first that the store has forgotten. */
  take(subject: string, count: number): readonly string[] {
    const held = this.#ids.get(subject);
    if (held === undefined) return [];
    const taken: string[] = [];
    for (const id of held) {
      if (taken.length >= count) break;
      taken.push(id);
    }
    for (const id of taken) held.delete(id);
    if (held.size === 0) this.#ids.delete(subject);
    return taken;
  }

  /** Notes that the store has forgotten some slots of the subject. */
  putFirst(subject: string, ids: readonly string[]): void {
    const held = this.#ids.get(subject);
    const lost = ids.filter((id) => held?.delete(id));
    if (held !== undefined) this.#ids.set(subject, new Set([...lost, ...held]));
  }

  has({ subject, id }: HeldSlot): boolean {
    return this.#ids.get(subject)?.has(id) === true;
  }

  all(): readonly HeldSlot[] {
    return [...this.#ids].flatMap(([subject, ids]) => [...ids].map((id) => ({ subject, id })));
  }
}

/** One slot in the store. */
export interface HeldSlot {
  readonly subject: string;
  readonly id: string;
}

/** Slots by their subjects. */
export function bySubject(slots: readonly HeldSlot[]): ReadonlyMap<string, readonly string[]> {
  const grouped = new Map<string, string[]>();
  for (const { subject, id } of slots) {
    const ids = grouped.get(subject);
    if (ids === undefined) grouped.set(subject, [id]);
    else ids.push(id);
  }
  return grouped;
}
