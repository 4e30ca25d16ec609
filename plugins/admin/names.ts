import type { Channel } from './core-types.ts';

/** Returns the names and patterns that a channel serves; those that its provider lists where it serves just them. */
export function namesOf(channel: Channel): readonly string[] {
  return channel.models.length > 0 ? channel.models : (channel.listed?.() ?? []);
}
