/** Defines channel kinds for a provider of a known API by name and base URL, such as `openai-compatible`. */
import type { z } from 'zod';
import type { ChannelConfig, ChannelEntry, ChannelKind, ChannelOptions } from 'sluice';

/** Returns the channel kind with `name`, which becomes the id of the channel, and `baseUrl` as options. */
export function compatible<Schema extends z.ZodObject>(kind: ChannelKind<Schema>) {
  const entry = ({ name, ...rest }: Named & ChannelConfig<z.input<Schema>>): ChannelEntry =>
    kind({ id: name, ...rest } as unknown as ChannelConfig<z.input<Schema>>);
  return Object.assign(entry, { spec: kind.spec });
}

/** Required options of these kinds. */
export interface Named {
  /** Name of the provider in logs, prices and the dashboard. */
  readonly name: string;
  readonly baseUrl: string;
}

/** Returns the base URL. Throws an error with `example` if there is none. */
export function requiredBaseUrl({ baseUrl }: ChannelOptions, example: string): string {
  if (baseUrl === undefined)
    throw new Error(`baseUrl is missing. Give the address up to and including its version: ${example}.`);
  return baseUrl;
}
