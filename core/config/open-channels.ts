/** Opens the channels of a gateway. */
import { basename } from 'node:path';
import type { Channel } from '../sdk/call.ts';
import { checkOwnChannelKinds } from './definitions.ts';
import { makeChannel, type ChannelBuildOptions } from './configured-channel.ts';
import { ModelDiscovery, type DiscoveredModels } from '../routing/model-discovery.ts';
import type { Build } from './plugin-setup.ts';

/** Opens the channels of the config, and loads the stored model lists of their providers. */
export async function openChannels({
  config,
  services: { stores, log },
  problems,
  warnings,
  format,
  onClose,
}: Build): Promise<{
  readonly channels: readonly Channel[];
  readonly discoveries: readonly ModelDiscovery[];
}> {
  const { settings } = config;
  const file = basename(config.file);
  await checkOwnChannelKinds(config.root, problems);
  const channels: Channel[] = [];
  const discoveries: ModelDiscovery[] = [];
  const discovery: ChannelBuildOptions['discovery'] = (cacheKey, listModels, ownLog) => {
    const made = new ModelDiscovery({
      listModels,
      cacheKey,
      kept: stores.namespace<DiscoveredModels>('model-lists'),
      log: ownLog,
    });
    discoveries.push(made);
    onClose(() => made.close());
    return made;
  };
  for (const { at, where: origin, entry } of config.channels) {
    const where = origin ?? `${file}, ${at} "${entry.options.id ?? entry.spec.name}"`;
    const channel = makeChannel(entry, {
      settings,
      where,
      problems,
      warnings,
      log,
      format,
      discovery,
      onClose,
    });
    if (channel === undefined) continue;
    if (channels.some(({ id }) => id === channel.id)) {
      problems.push(
        `${origin ?? `${file}, ${at}`}: the id "${channel.id}" is taken by another channel. Give one of them another id.`,
      );
    }
    channels.push(channel);
  }
  if (channels.length === 0)
    warnings.push(
      `${file}: no channel is configured, so every call gets 503. Set the key of a provider, or add demo().`,
    );
  await Promise.all(discoveries.map((one) => one.load()));
  return { channels, discoveries };
}
