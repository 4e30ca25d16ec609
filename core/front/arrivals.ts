/** Remembers when connections were accepted, until their first call. */
import type { Socket } from 'node:net';
import type { Arrival } from './call-waits.ts';

const arrivals = new WeakMap<Socket, Arrival>();

/** Notes a connection that the primary process accepted so many milliseconds ago. */
export function noteArrival(socket: Socket, waited: number): void {
  const openedAt = performance.now();
  arrivals.set(socket, { acceptedAt: openedAt - waited, openedAt });
}

/** Returns the arrival of a connection for its first call, and undefined for those that follow. */
export function takeArrival(socket: Socket): Arrival | undefined {
  const arrival = arrivals.get(socket);
  if (arrival !== undefined) arrivals.delete(socket);
  return arrival;
}
