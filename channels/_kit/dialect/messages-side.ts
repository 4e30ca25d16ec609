/** Adds the messages format to a channel of chat completions whose provider also serves clients of Anthropic's API, at another address. */
import {
  matchesName,
  type ChannelOptions,
  type ChannelTools,
  type ModelTraits,
  type ChannelParts,
} from 'sluice';
import { takesOff } from 'sluice/internal';
import { claudeTraits } from '../../anthropic.ts';
import { overHttp, type HttpProvider } from '../http/http-channel.ts';

/** Endpoint for the messages format at a provider of chat completions. */
export interface MessagesSide {
  /** End of the address of chat completions, and what stands in its place there: `['/v1', '/anthropic/v1']`. */
  readonly instead: readonly [chat: string, messages: string];
  /** Headers that carry the key. */
  readonly headers: HttpProvider['headers'];
  /** Patterns of the models that are served so. Default: all. */
  readonly models?: readonly string[];
  /** Traits of a model in this format, by those in chat completions and by its name. Default: what is true of the model in both. */
  traits?(chat: ModelTraits, model: string): ModelTraits;
}

/**
 * Adds the messages format of the provider: clients of it are served there, all others as before. A channel with an address of its own that does
 * not end as the provider's does has chat completions alone.
 */
export function withMessages(
  parts: ChannelParts,
  options: ChannelOptions,
  tools: ChannelTools,
  { baseUrl: home, side }: { readonly baseUrl: string; readonly side: MessagesSide },
): ChannelParts {
  const { headers, models = ['*'], traits: traitsThere = inBoth } = side;
  const [chat, messages] = side.instead;
  const base = (options.baseUrl ?? home).replace(/\/+$/, '');
  if (!base.endsWith(chat)) return parts;
  const baseUrl = base.slice(0, base.length - chat.length) + messages;
  const speaks = { chat: ['messages'] };
  const defaults = { 'anthropic-version': '2023-06-01' };
  const there = overHttp({ ...options, baseUrl }, tools, { baseUrl, headers, speaks, defaults });
  const formats = parts.speaks.chat ?? [];
  return {
    ...parts,
    speaks: { ...parts.speaks, chat: [...formats, 'messages'] },
    traits(model) {
      const known = parts.traits?.(model) ?? {};
      const own = known.formats ?? formats;
      if (!matchesName(models, model)) return { ...known, formats: own };
      return {
        ...known,
        formats: [...own, 'messages'],
        byFormat: { ...known.byFormat, messages: traitsThere(known, model) },
      };
    },
    open: (call, request) =>
      request.format === 'messages' ? there.open(call, request) : parts.open(call, request),
  };
}

/** Traits of Claude, whose makers are named before a slash: `anthropic/claude-sonnet-4.5`. */
export function claudeBehindSlash(_chat: ModelTraits, model: string): ModelTraits {
  return claudeTraits(model.slice(model.lastIndexOf('/') + 1));
}

/** Returns the traits of a model that hold in both formats. Reasoning is requested in the client's own format. */
export function inBoth(chat: ModelTraits): ModelTraits {
  const { thinksByDefault, forcedTools, namedTools, jsonSchema } = chat;
  return {
    ...(thinksByDefault === undefined ? {} : { thinksByDefault }),
    ...(forcedTools === undefined ? {} : { forcedTools }),
    ...(namedTools === undefined ? {} : { namedTools }),
    ...(jsonSchema === undefined ? {} : { jsonSchema }),
    ...(takesOff(chat) ? {} : { stopsThinking: false }),
    midSystem: false,
  };
}
