/** Removes the beginning that a model repeats from an answer. */
import type { GatewayEvent } from 'sluice';

type Emit = (event: GatewayEvent) => void;
type TextDelta = Extract<GatewayEvent, { readonly type: 'text-delta' }>;

/**
 * Leaves out what an answer says again of the beginning that the request gave it. What only seems to say it again is held back until it
 * shows that it does not.
 */
export function withoutBegun(begun: string, emit: Emit): Emit {
  /** Held events of each choice; absent once the choice was decided. */
  const held = new Map<number, readonly TextDelta[]>();
  const judged = new Set<number>();

  const release = (choice: number): void => {
    judged.add(choice);
    for (const event of held.get(choice) ?? []) emit(event);
    held.delete(choice);
  };

  return (event) => {
    if (!('choice' in event) || event.choice === undefined || judged.has(event.choice)) {
      emit(event);
      return;
    }
    const { choice } = event;
    if (event.type !== 'text-delta') {
      if (event.type !== 'text-start' && !event.type.startsWith('reasoning-')) release(choice);
      emit(event);
      return;
    }
    const all = [...(held.get(choice) ?? []), event];
    const received = all.map(({ text }) => text).join('');
    if (received.startsWith(begun)) {
      judged.add(choice);
      held.delete(choice);
      const { logprobs: _logprobs, ...rest } = event;
      if (received.length > begun.length) emit({ ...rest, text: received.slice(begun.length) });
    } else {
      held.set(choice, all);
      if (!begun.startsWith(received)) release(choice);
    }
  };
}
