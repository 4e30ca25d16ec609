import type { z } from 'zod';
import type { ChannelConfig, ChannelEntry, ChannelKind, ChannelOptions } from 'sluice';

/** A kind for providers that have none of their own, straight in the config: `name` becomes the id of the channel. */
export function compatible<Schema extends z.ZodObject>(kind: ChannelKind<Schema>) {
  const entry = ({ name, ...rest }: Named & ChannelConfig<z.input<Schema>>): ChannelEntry =>
    kind({ id: name, ...rest } as unknown as ChannelConfig<z.input<Schema>>);
  return Object.assign(entry, { spec: kind.spec });
}

/** What these kinds must be told. */
export interface Named {
  /** What logs, prices and the dashboard call it. */
  readonly name: string;
  readonly baseUrl: string;
}

/** The base URL. Throws where there is none, with one that shows what is meant. */
export function requiredBaseUrl({ baseUrl }: ChannelOptions, example: string): string {
  if (baseUrl === undefined)
    throw new Error(`baseUrl is missing. Give the address up to and including its version: ${example}.`);
  return baseUrl;
}
