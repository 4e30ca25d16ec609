import { Keyv } from 'keyv';
import { readConfig } from '../../../core/config/config.ts';
import { makeChannel } from '../../../core/config/configured-channel.ts';
import { createLog } from '../../../core/log.ts';
import { ModelDiscovery } from '../../../core/routing/model-discovery.ts';
import type { Channel } from '../../../core/sdk/call.ts';
import type { ChannelEntry } from '../../../core/sdk/define.ts';

/** Sets a channel up. Returns it, or the sentences that say what is wrong with its entry. */
export function channelOf(entry: ChannelEntry): {
  readonly channel: Channel | undefined;
  readonly problems: string[];
} {
  const { settings } = readConfig({}, '/x/gateway.config.ts');
  const problems: string[] = [];
  const channel = makeChannel(entry, {
    settings,
    where: 'here',
    problems,
    warnings: [],
    log: createLog('silent'),
    format: () => undefined,
    discovery: (cacheKey, listModels, log) =>
      new ModelDiscovery({ cacheKey, listModels, log, kept: new Keyv() }),
    onClose: () => {},
  });
  return { channel, problems };
}

/** Returns the profile of a model behind a channel. Throws when its entry is wrong. */
export function profileOf(entry: ChannelEntry, model: string): ReturnType<Channel['traits']> {
  const { channel, problems } = channelOf(entry);
  if (channel === undefined) throw new Error(problems.join('\n'));
  return channel.traits(model);
}
