import { createHash } from 'node:crypto';
import type { ChannelKey, KeyRegion } from '../sdk/channel.ts';

/** Returns the keys of a channel. Hashes tell them apart, in the log and across restarts, and give none of them away; regions go by their names. */
export function channelKeys(keys: readonly string[], regions?: readonly KeyRegion[]): readonly ChannelKey[] {
  if (regions !== undefined) return regions.map((one, index) => regionKey(keys, one, index));
  if (keys.length === 0) return [{ id: '', index: 0 }];
  return keys.map((key, index) => ({ id: hashOf(key), index }));
}

function regionKey(keys: readonly string[], { region, key, site }: KeyRegion, index: number): ChannelKey {
  const value = key === undefined ? undefined : keys[key];
  const id = value === undefined ? region : `${region} ${hashOf(value)}`;
  return { id, index, ...(site === undefined ? {} : { site }) };
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 12);
}
