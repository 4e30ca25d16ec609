/** The settings that a config file exports. */
import type { z } from 'zod';
import type { settingsSchema } from '../settings/index.ts';
import type { ChannelEntry } from './author/channel.ts';
import type { PluginEntry } from './author/plugin.ts';

type Falsy = false | null | undefined | '' | 0;

/**
 * Default export of `gateway.config.ts`, for `defineConfig`.
 *
 * @example
 * const config: GatewayConfig = { listen: { port: 8080 }, channels: [demo()] };
 */
export type GatewayConfig = z.input<typeof settingsSchema> & {
  /** Adjusts discovered plugins: `quota({ … })`, `logging.off()`. Order here is order within a stage. */
  readonly plugins?: readonly (PluginEntry | Falsy)[];
  /** The providers, each made by a channel kind: `anthropic({ key: env('ANTHROPIC_API_KEY') })`. Falsy entries are passed over. */
  readonly channels?: readonly (ChannelEntry | Falsy)[];
};
