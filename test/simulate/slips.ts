/** A small mistake in the code of the ledger that simulations must notice. */
export interface Slip {
  readonly what: string;
  /** Below core/money/ledger. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Mistakes that were made once, and others that are near. */
export const slips: readonly Slip[] = [
  {
    what: 'calls are served from an allotment whose lease may be over',
    file: 'allotment.ts',
    from: 'isWithin(this.lease, this.#renewedAt, this.#clock) &&',
    to: '',
  },
  {
    what: 'a call is served from a reservation that was made before its process stood still',
    file: 'bookkeeper.ts',
    from: 'if (!isWithin(reservation.lease, sent, this.#clock)) {',
    to: 'if (reservation.lease < 0) {',
  },
  {
    what: 'a call gives back all that was reserved for it, and what it was charged too',
    file: 'allotment.ts',
    from: 'this.#free = difference(sum(this.#free, most), amounts);',
    to: 'this.#free = sum(this.#free, most);',
  },
  {
    what: 'charges that wait are not counted in what an allotment needs',
    file: 'allotment.ts',
    from: 'return sum(this.#claimed, this.#unsettled);',
    to: 'return this.#claimed;',
  },
  {
    what: 'a charge that is settled again is taken off its allotment again',
    file: 'sql.ts',
    from: 'if (!undrawn.delete(record.id) || allotment === undefined) continue;',
    to: 'if (allotment === undefined) continue;',
  },
  {
    what: 'a call that ends in a closed allotment gives nothing back',
    file: 'allotment.ts',
    from: 'else this.isDirty = true;',
    to: '',
  },
  {
    what: 'what could not be given back is forgotten',
    file: 'allotments.ts',
    from: 'if (allotment !== undefined) allotment.isDirty = true;',
    to: '',
  },
  {
    what: 'a reservation that a renewal made anew stays when its first release is answered late',
    file: 'bookkeeper.ts',
    from: 'await this.#ledger.release(ids);',
    to: 'await this.#ledger.release(ids); for (const id of ids) this.#released.delete(id);',
  },
  {
    what: 'a call that costs more than was reserved for it takes what is reserved for others',
    file: 'allotment.ts',
    from: 'const amounts = smaller(charged, most);',
    to: 'const amounts = charged;',
  },
  {
    what: 'the reservation of a call whose end nobody reports is kept',
    file: 'allotments.ts',
    from: 'if (now - since >= (this.#of(reservation)?.lease ?? 0)) this.release(reservation);',
    to: 'if (now < since) this.release(reservation);',
  },
  {
    what: 'a call is refused while another process gives back what it has reserved ahead',
    file: 'bookkeeper.ts',
    from: 'if (!refusal.claimed || !refusal.recalls) throw refusal;',
    to: 'throw refusal;',
  },
  {
    what: 'no process looks whether others want its allotments back',
    file: 'claim-watch.ts',
    from: 'if (this.#allotments.hasOpen) this.#allotments.recall',
    to: 'if (this.#clock.now() < 0) this.#allotments.recall',
  },
  {
    what: 'allotments are not renewed',
    file: 'allotments.ts',
    from: '.filter(({ renewAt }) => renewAt <= now)',
    to: '.filter(({ renewAt }) => renewAt < 0 * now)',
  },
];
