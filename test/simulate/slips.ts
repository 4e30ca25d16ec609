/** A small mistake in the code of budgets and limits that simulations must notice. */
export interface Slip {
  readonly what: string;
  /** Below core/money. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** A second change, where two parts of the code keep the same mistake away. */
  readonly also?: Readonly<Record<'file' | 'from' | 'to', string>>;
  /** Kind of the worlds that must notice it. Default: that of the folder. */
  readonly world?: 'redis' | 'windows';
}

/** Mistakes that were made once, and others that are near. */
export const slips: readonly Slip[] = [
  {
    what: 'calls are served from an allotment whose lease may be over',
    file: 'ledger/allotment.ts',
    from: 'isWithin(this.lease, this.#renewedAt, this.#clock) &&',
    to: '',
  },
  {
    what: 'a call is served from a reservation that was made before its process stood still',
    file: 'ledger/bookkeeper.ts',
    from: 'if (!isWithin(reservation.lease, sent, this.#clock)) {',
    to: 'if (reservation.lease < 0) {',
  },
  {
    what: 'a call gives back all that was reserved for it, and what it was charged too',
    file: 'ledger/allotment.ts',
    from: 'this.#free = difference(sum(this.#free, most), amounts);',
    to: 'this.#free = sum(this.#free, most);',
  },
  {
    what: 'charges that wait are not counted in what an allotment needs',
    file: 'ledger/allotment.ts',
    from: 'return sum(this.#claimed, this.#unsettled);',
    to: 'return this.#claimed;',
  },
  {
    what: 'a charge that is settled again is taken off its allotment again',
    file: 'ledger/sql.ts',
    from: 'if (!undrawn.delete(record.id) || allotment === undefined) continue;',
    to: 'if (allotment === undefined) continue;',
  },
  {
    what: 'a call that ends in a closed allotment gives nothing back',
    file: 'ledger/allotment.ts',
    from: 'else this.isDirty = true;',
    to: '',
  },
  {
    what: 'what could not be given back is forgotten',
    file: 'ledger/allotments.ts',
    from: 'if (allotment !== undefined) allotment.isDirty = true;',
    to: '',
  },
  {
    what: 'a call that costs more than was reserved for it takes what is reserved for others',
    file: 'ledger/allotment.ts',
    from: 'const amounts = charged === undefined ? most : smaller(charged, most);',
    to: 'const amounts = charged ?? most;',
  },
  {
    what: 'the reservation of a call whose end nobody reports is kept',
    file: 'ledger/allotments.ts',
    from: 'if (now - since >= (this.#of(reservation)?.lease ?? 0)) this.release(reservation);',
    to: 'if (now < since) this.release(reservation);',
  },
  {
    what: 'renewals overtake what ends reservations',
    file: 'ledger/in-order.ts',
    from: 'this.#last = result.catch(() => {});',
    to: '',
  },
  {
    what: 'a call is refused while another process gives back what it has reserved ahead',
    file: 'ledger/bookkeeper.ts',
    from: 'if (!refusal.claimed || !refusal.recalls) throw refusal;',
    to: 'throw refusal;',
  },
  {
    what: 'no process looks whether others want its allotments back',
    file: 'ledger/reservation-watch.ts',
    from: 'if (this.#allotments.hasOpen) this.#allotments.recall',
    to: 'if (this.#clock.now() < 0) this.#allotments.recall',
  },
  {
    what: 'allotments are not renewed',
    file: 'ledger/allotments.ts',
    from: '.filter(({ renewAt }) => renewAt <= now)',
    to: '.filter(({ renewAt }) => renewAt < 0 * now)',
  },
  {
    what: 'owners of a key are not charged',
    file: 'ledger/charge-sums.ts',
    from: '[keyId, ...owners].flatMap',
    to: '[keyId].flatMap',
  },
  {
    what: 'what is reserved ahead for another key of the same owner is not recalled',
    file: 'ledger/periods.ts',
    from: '.map((state) => holderOf(state, keyId))',
    to: '.map(() => keyId)',
  },
  {
    what: 'an allotment that is made anew claims nothing of owners',
    file: 'ledger/allotments.ts',
    from: '...(owners === undefined ? {} : { owners }),',
    to: '',
  },
  {
    what: 'a rolling window is one bucket too short',
    file: 'ledger/windows.ts',
    from: 'start: bucketOf(`hours:${hours}`, at - hours * hour).start,',
    to: 'start: bucketOf(`hours:${hours}`, at - hours * hour).end,',
    world: 'windows',
  },
  {
    what: 'a rolling window is one bucket too long',
    file: 'ledger/windows.ts',
    from: 'start: bucketOf(`hours:${hours}`, at - hours * hour).start,',
    to: 'start: bucketOf(`hours:${hours}`, at - hours * hour - bucketLength(hours)).start,',
    world: 'windows',
  },
  {
    what: 'each day of a time zone has 24 hours',
    file: '../model/time-zones.ts',
    from: 'const number = zone.dayNumber(at);',
    to: `const number = zone.dayNumber(at);
    if (zone.day.end > 0 && at >= zone.day.end && at < zone.day.end + dayLength)
      return (zone.day = { number, start: zone.day.end, end: zone.day.end + dayLength });`,
    world: 'windows',
  },
  {
    what: 'the price rule is forgotten on settlement',
    file: 'ledger/with-owners.ts',
    from: 'const charged = multiplied(settlement.charged, factor);',
    to: 'const charged = settlement.charged;',
    world: 'windows',
  },
  {
    what: 'an allotment is charged less than a call whose owners and price are looked up on settlement',
    file: 'ledger/allotments.ts',
    from: 'isFinal ? charged : undefined',
    to: 'charged',
    world: 'windows',
  },
  {
    what: 'an allotment is used after its part of a rolling window',
    file: 'ledger/allotment.ts',
    from: '&& wall >= start && wall < end',
    to: '&& wall >= start - end',
    world: 'windows',
  },
  {
    what: 'what was counted ahead is used after its slice',
    file: 'rates/shares.ts',
    from: 'sentAt + sliceMs,',
    to: 'sentAt + 30 * sliceMs,',
  },
  {
    what: 'what is left of a slice is not given back',
    file: 'rates/shares.ts',
    from: 'this.#returns.lower(subject, share.slice, share.free);',
    to: '',
  },
  {
    what: 'slots that nobody uses are not given back',
    file: 'rates/shares.ts',
    from: 'if (slots !== undefined) this.#returns.release(subject, slots.free);',
    to: '',
  },
  {
    what: 'tokens that a call of an earlier slice did not use are used in this one',
    file: 'rates/shares.ts',
    from: 'if (isCurrent && share.slice === slice)',
    to: 'if (isCurrent)',
  },
  {
    what: 'tokens that a call used beyond its estimate are not counted',
    file: 'rates/shares.ts',
    from: 'this.#returns.raise(subject, slice, difference - own);',
    to: '',
  },
  {
    what: 'a call is refused while other workers hold what they do not use',
    file: 'rates/server.ts',
    from: 'if (holders.size > 0)',
    to: 'if (holders.size < 0)',
  },
  {
    what: 'what is counted ahead is not counted for the others',
    file: 'rates/memory.ts',
    from: 'count(minute, slice, ahead);',
    to: '',
  },
  {
    what: 'slots that are taken ahead are not counted for the others',
    file: 'rates/memory.ts',
    from: 'this.#running.set(subject, running + taken);',
    to: '',
  },
  {
    what: 'slots of a worker that was killed stay taken',
    file: 'rates/server.ts',
    from: 'this.#rates.release(subject, count);\n    this.#held.delete(worker);',
    to: 'this.#held.delete(worker);',
  },
  {
    what: 'what was taken ahead is kept when its answer comes too late',
    file: 'rates/primary.ts',
    from: 'this.#shares.giveBackSlots([...slots, ...ahead]);',
    to: 'this.#shares.giveBackSlots(slots);',
  },
  ...(
    [
      {
        what: 'slots are used after their lease may be over',
        file: 'rates/shares.ts',
        from: 'if (slots.length > 0 && now >= (this.#line.slotsUntil?.() ?? Infinity)) return undefined;',
        to: '',
      },
      {
        what: 'a call is let in by an answer that is older than the lease of its slots',
        file: 'rates/store-counts.ts',
        from: 'clock.now() - sentAt < clockMargin * lease',
        to: 'clock.now() >= sentAt',
      },
      {
        what: 'slots that others may have been given are held on to for calls that follow',
        file: 'rates/redis.ts',
        from: 'this.#renewAll(this.#held.all(), false)',
        to: 'this.#renewAll(this.#held.all(), true)',
      },
      {
        what: 'slots of running calls that the store has forgotten are not held on to',
        file: 'rates/redis.ts',
        from: 'await this.#renewAll(lost, true);',
        to: '',
      },
      {
        what: 'what is counted ahead while a recall arrives is kept',
        file: 'rates/redis.ts',
        from: 'await this.#aheadRequests.settled();',
        to: '',
      },
      {
        what: 'a call is refused while other workers hold what they do not use',
        file: 'rates/redis.ts',
        from: 'answer.holders.length === 0',
        to: 'answer.holders.length >= 0',
      },
      {
        what: 'recalls are not heard',
        file: 'rates/recalls.ts',
        from: 'if (subjects.length > 0) giveBack(subjects);',
        to: '',
      },
      {
        what: 'the worker that asks does not give back what it holds itself',
        file: 'rates/recalls.ts',
        from: 'if (others.length < holders.length) this.#options.giveBack(subjects);',
        to: '',
      },
      {
        what: 'a worker that hears no recalls counts ahead',
        file: 'rates/redis.ts',
        from: 'wanted.subject !== undefined && this.#recalls.listen()',
        to: 'wanted.subject !== undefined',
      },
      {
        what: 'a worker that holds slots for long is no longer known to hold them',
        file: 'rates/redis.ts',
        from: 'anyway ? [] : this.#shares.slotSubjects.map(holdersOf)',
        to: '[] as string[]',
      },
      {
        what: 'who holds slots is not noted',
        file: 'rates/scripts.ts',
        from: 'if ahead[i] > 0 then hold(i, now + lease) end',
        to: '',
      },
      {
        what: 'who holds a part of a minute is not noted',
        file: 'rates/scripts.ts',
        from: 'if ahead[i] > 0 then hold(i, ending + ${returnTime}) end',
        to: '',
      },
      {
        what: 'what was given back after a recall is counted ahead again',
        file: 'rates/scripts.ts',
        from: 'if resting and tonumber(resting) > now then isAhead = false end',
        to: '',
      },
      {
        what: 'what is counted ahead is not counted for the others',
        file: 'rates/scripts.ts',
        from: 'local count = costs[i] + ahead[i]',
        to: 'local count = costs[i]',
      },
      {
        what: 'slots that are taken ahead are not counted for the others',
        file: 'rates/scripts.ts',
        from: 'for j = 0, ahead[i] do',
        to: 'for j = 0, 0 do',
      },
      {
        what: 'slots of a worker that was killed stay taken',
        file: 'rates/scripts.ts',
        from: "  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)\n",
        to: '',
      },
      {
        what: 'a call that one level refuses is counted by the others',
        file: 'rates/scripts.ts',
        from: 'if refused == 0 then\n  for i = 1, minutes do',
        to: 'if refused ~= 1 then\n  for i = 1, minutes do',
      },
      {
        what: 'slots of one level alone are taken',
        file: 'rates/scripts.ts',
        from: 'for i = minutes + 1, rules do\n    if isAhead then',
        to: 'for i = minutes + 1, minutes + 1 do\n    if isAhead then',
      },
      {
        what: 'what was counted ahead is used after its slice',
        file: 'rates/answers.ts',
        from: 'sliceMs: clockMargin * sliceMs',
        to: 'sliceMs: 30 * sliceMs',
      },
      {
        what: 'what was counted ahead is used when the connections are lost by which it was counted and recalled',
        file: 'rates/redis.ts',
        from: 'down: () => this.#shares.giveUp(),',
        to: 'down: () => {},',
        // One of the two is enough: whoever holds something also waits for recalls, and gives it up when that connection is lost.
        also: { file: 'rates/recalls.ts', from: '        giveBack();\n', to: '' },
      },
      {
        what: 'tokens that a call used beyond its estimate are not counted',
        file: 'rates/give-backs.ts',
        from: 'else if (amount > 0)',
        to: 'else if (amount > 1e9)',
      },
      {
        what: 'tokens that a call did not use are given back to another slice',
        file: 'rates/give-backs.ts',
        from: 'values: [String(slice), String(-amount)]',
        to: 'values: [String(slice + 1), String(-amount)]',
      },
      {
        what: 'slots of calls that have ended are renewed',
        file: 'rates/held-slots.ts',
        from: 'for (const id of taken) held.delete(id);',
        to: '',
      },
      {
        what: 'slots that the store still has are given back before those that it has forgotten',
        file: 'rates/redis.ts',
        from: 'for (const [subject, ids] of forgotten) this.#held.putFirst(subject, ids);',
        to: '',
      },
    ] as const
  ).map((slip) => ({ ...slip, world: 'redis' as const })),
];
