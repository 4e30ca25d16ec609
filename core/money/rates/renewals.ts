/** Renews leases of slots in the shared store. */
import { bySubject, type HeldSlot } from './held-slots.ts';
import { renewScript } from './scripts.ts';
import { keyOf, type RatesStore } from './store.ts';

/** Leases that are renewed with one command. */
const renewedAtOnce = 500;

/** Arguments of {@link renewSlots}. */
export interface RenewalOptions {
  /** In milliseconds. */
  readonly lease: number;
  /** Name of this process. */
  readonly process: string;
  /** Sets of holders in which the process stays. */
  readonly holders: readonly string[];
  readonly isHeld: (slot: HeldSlot) => boolean;
  /** Renews also what the store has forgotten. */
  readonly anyway: boolean;
}

/** Renews slots. Resolves with those that the store had forgotten; rejects when it does not answer. */
export async function renewSlots(
  store: RatesStore,
  slots: readonly HeldSlot[],
  { lease, process, holders, isHeld, anyway }: RenewalOptions,
): Promise<readonly HeldSlot[]> {
  const lost: HeldSlot[] = [];
  for (let from = 0; from < slots.length; from += renewedAtOnce) {
    // Given back while others were renewed: renewing it would bring it to life again.
    const some = bySubject(slots.slice(from, from + renewedAtOnce).filter(isHeld));
    const ordered = [...some].flatMap(([subject, ids]) => ids.map((id) => ({ subject, id })));
    const values = [String(lease), process, String(some.size), anyway ? '1' : '0'];
    for (const ids of some.values()) values.push(String(ids.length), ...ids);
    const keys = [...[...some.keys()].map(keyOf), ...(from === 0 ? holders : [])];
    // oxlint-disable-next-line no-await-in-loop -- one command at a time, however many calls run
    for (const index of await store.run(renewScript, keys, values)) {
      const one = ordered[Number(index) - 1];
      if (one !== undefined) lost.push(one);
    }
  }
  return lost;
}
