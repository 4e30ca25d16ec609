import type { z } from 'zod';
import { withEvents } from '../answered-events.ts';
import type { AnsweringSpec } from './answering.ts';
import type { ChannelConfig, ChannelEntry, ChannelKind, ChannelSpec } from './channel.ts';

/**
 * Declares a channel kind: a provider, or a server of the operator's own. Most are made by `openaiCompatible` of
 * `sluice/channels/openai-compatible` in a few lines; this is for those that need more.
 *
 * @example
 * export default defineChannel({
 *   name: 'mine',
 *   setup: ({ baseUrl = 'https://models.example' }, { http, keys }) => ({
 *     speaks: { chat: ['chat-completions'] },
 *     open: (call, { path, body }) =>
 *       http.send(call, {
 *         url: baseUrl + path,
 *         headers: { 'content-type': 'application/json', 'x-key': keys[call.target?.key.index ?? 0] ?? '' },
 *         body,
 *       }),
 *   }),
 * });
 */
export function defineChannel<Schema extends z.ZodObject>(
  spec: ChannelSpec<Schema> | AnsweringSpec<Schema>,
): ChannelKind<Schema> {
  const uniform: ChannelSpec<Schema> = {
    ...spec,
    setup(options, tools) {
      const parts = spec.setup(options, tools);
      return 'answer' in parts ? withEvents(parts, tools.keys) : parts;
    },
  };
  const wide = uniform as unknown as ChannelSpec<z.ZodObject>;
  const channel = (options?: ChannelConfig<z.input<Schema>>): ChannelEntry => ({
    kind: 'channel',
    spec: wide,
    options: (options ?? {}) as ChannelEntry['options'],
  });
  return Object.assign(channel, { spec: uniform });
}
