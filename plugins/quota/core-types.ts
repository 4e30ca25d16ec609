/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { Observing } from 'sluice';
import type { Call, InternalTools } from 'sluice/internal';

/** Books what calls cost. */
export type Bookkeeper = InternalTools['bookkeeper'];

/** Part of a budget that is held for a call. */
export type Reservation = Awaited<ReturnType<Bookkeeper['reserve']>>;

/** Charge and record of a call that has ended. */
type Settlement = Parameters<Bookkeeper['enqueue']>[0];

/** Money and tokens. */
export type Amounts = Settlement['charged'];

/** Changes that plugins make to a call. */
export type CallEdits = Call['edits'];

/** Ways in which a response ended. */
export type Ending = Parameters<NonNullable<Observing['end']>>[0];
