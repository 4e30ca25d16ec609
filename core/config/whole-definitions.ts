/**
 * Definitions of the plugins and channels of this repository that get more than the public API: the core's own `Call` and tools. A plugin
 * made with `definePlugin` of `sluice` that asks for these does not compile.
 */
import type { z } from 'zod';
import { defineChannel as definePublicChannel } from '../sdk/author/define-channel.ts';
import type { ChannelKind, ChannelOptions, ChannelParts, ChannelSpec } from '../sdk/author/channel.ts';
import { definePlugin as definePublicPlugin, type Plugin, type PluginSpec } from '../sdk/author/plugin.ts';
import type { ChannelTools, Handler } from '../sdk/define.ts';
import type { InternalTools } from './internal-tools.ts';

/** Declaration of a plugin that gets the core's own call and tools. */
export interface WholePluginSpec<Schema extends z.ZodType> extends Omit<PluginSpec<Schema>, 'setup'> {
  /** Runs once at start-up. */
  readonly setup: (options: z.output<Schema>, tools: InternalTools) => Handler | Promise<Handler>;
}

/** Declares a plugin that gets the core's own call and tools. The compiler does not see that the gateway gives them to every plugin. */
export function definePlugin<Schema extends z.ZodType>(spec: WholePluginSpec<Schema>): Plugin<Schema> {
  return definePublicPlugin(spec as unknown as PluginSpec<Schema>);
}

/** Declaration of a channel kind that gets the core's own tools. */
export interface WholeChannelSpec<Schema extends z.ZodObject> extends Omit<ChannelSpec<Schema>, 'setup'> {
  readonly setup: (options: ChannelOptions & z.output<Schema>, tools: ChannelTools) => ChannelParts;
}

/** Declares a channel kind that gets the core's own tools. */
export function defineChannel<Schema extends z.ZodObject>(
  spec: WholeChannelSpec<Schema>,
): ChannelKind<Schema> {
  return definePublicChannel(spec as unknown as ChannelSpec<Schema>);
}

/** Sets a plugin up and returns its handler, which gets the core's own calls: every `Call` of a plugin is one of them. */
export async function setUpPlugin(
  spec: PluginSpec<z.ZodType>,
  options: unknown,
  tools: InternalTools,
): Promise<Handler> {
  return (await spec.setup(options, tools)) as unknown as Handler;
}
