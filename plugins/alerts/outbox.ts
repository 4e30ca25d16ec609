/** Builds messages from alerts: several alerts at the same time are one message to a destination. */
import { randomUUID } from 'node:crypto';
import { limits, type Item, type Message } from './alert.ts';

/** An outbox, and the number of messages that had no room in it. */
export interface Filled {
  readonly outbox: readonly Message[];
  readonly dropped: readonly Message[];
}

/**
 * Adds items to the messages of their destinations. A message that was not tried yet takes further items, except for destinations that want one
 * message for each alert. The oldest messages make room for new ones.
 */
export function addToOutbox(
  outbox: readonly Message[],
  items: readonly Item[],
  {
    now,
    destinationsOf,
    takesOne,
  }: {
    now: number;
    destinationsOf: (item: Item) => readonly string[];
    takesOne: (destination: string) => boolean;
  },
): Filled {
  const messages = [...outbox];
  const openMessages = new Map<string, number>();
  for (const [index, { destination, tries }] of messages.entries())
    if (tries === 0 && !takesOne(destination)) openMessages.set(destination, index);
  for (const item of items)
    for (const destination of destinationsOf(item)) {
      const index = openMessages.get(destination);
      const open = index === undefined ? undefined : messages[index];
      if (index !== undefined && open !== undefined) {
        messages[index] =
          open.items.length < limits.items
            ? { ...open, items: [...open.items, item] }
            : { ...open, more: open.more + 1 };
        continue;
      }
      if (!takesOne(destination)) openMessages.set(destination, messages.length);
      messages.push({
        id: `msg_${randomUUID().replaceAll('-', '')}`,
        destination,
        items: [item],
        more: 0,
        tries: 0,
        nextAt: now,
        createdAt: now,
      });
    }
  return bounded(messages);
}

function bounded(messages: readonly Message[]): Filled {
  const counts = new Map<string, number>();
  const kept: Message[] = [];
  const dropped: Message[] = [];
  // The newest first, because they show the current state.
  for (const message of messages.toReversed()) {
    const count = (counts.get(message.destination) ?? 0) + 1;
    counts.set(message.destination, count);
    if (count > limits.perDestination || kept.length >= limits.outbox) dropped.push(message);
    else kept.push(message);
  }
  return { outbox: kept.toReversed(), dropped };
}
