/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { Codec } from 'sluice/channel-kit';
import type { InternalTools } from 'sluice/internal';

/** Part of a request that the traits of a model may change. */
export type SettledName = Parameters<NonNullable<Codec['places']>>[0];

/** A file that was fetched from a URL. */
export type Media = Awaited<ReturnType<InternalTools['fetchMedia']>>;
