import {
  GatewayError,
  isObject,
  type Call,
  type ChatRequest,
  type JsonObject,
  type JsonValue,
  type Message,
  type ModelTraits,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { settleForcedTools, settleFunctionTools, thinksAbout } from 'sluice/internal';
import type { TranslationOptions } from './options.ts';
import { clampOutput } from './output-limit.ts';

/** A request as a model with these traits can be asked it, before it is put into words. */
export interface Settled {
  readonly request: ChatRequest;
  readonly traits: ModelTraits;
  /** True when the provider is asked for a stream: also for a whole reply, where the model thinks in streams alone. */
  readonly stream: boolean;
  /** Members at the top of the client's body of which the provider refuses something that it does not know. */
  readonly unknown: readonly string[];
}

/** Returns the request as a stream or a whole reply, as the call wants it: a plugin may have changed the call. */
export function asStreamed(request: ChatRequest, { stream }: Pick<Call, 'stream'>): ChatRequest {
  return request.stream === stream ? request : { ...request, stream };
}

/**
 * Settles what no format has to do with: forced tools on models that think, and members that only the provider of another API knows. What changes is
 * reported in neutral words, members in the client's.
 */
export function settle(
  request: ChatRequest,
  traits: ModelTraits,
  codec: Pick<Codec, 'format' | 'forcedTools'>,
  chosen: TranslationOptions,
  drop: (path: string) => void,
): Settled {
  const able = traits.tools === false ? withoutTools(request, chosen, drop) : request;
  const limited = clampOutput(able, traits, chosen, drop);
  const asked = settleFunctionTools(withoutDefaultThinking(limited, traits), traits, codec.format, drop);
  const settled = settleForcedTools(asked, traits, usualRule(codec, traits), drop);
  const { stream, settings, operation } = settled.request;
  const isStream =
    stream ||
    (traits.thinksInStreamsOnly === true && operation === 'chat' && thinksAbout(settings.reasoning, traits));
  if (traits.refusesUnknown !== true || request.format !== codec.format)
    return { ...settled, stream: isStream, unknown: none };
  return { ...settled, stream: isStream, ...withoutUnknown(settled.request, traits, drop) };
}

/**
 * The request without tools, calls and results where the operator lets drop what cannot be carried. Throws 400 otherwise, because a client that gave
 * tools waits for their calls.
 */
function withoutTools(
  request: ChatRequest,
  { unsupported }: TranslationOptions,
  drop: (path: string) => void,
): ChatRequest {
  const { tools, toolChoice: _choice, messages, ...rest } = request;
  const isTold = ({ content }: Message): boolean => content.some(isOfTools);
  if (tools.length === 0 && !messages.some(isTold)) return request;
  if (unsupported === 'refuse')
    throw new GatewayError(
      'unsupported_tool',
      'The channel for this model takes no tools: choose another model.',
      {
        param: tools.length === 0 ? 'messages' : 'tools',
      },
    );
  if (tools.length > 0) drop('tools');
  for (const { at } of messages.filter(isTold)) drop(at ?? 'messages');
  const left = messages
    .map((message) =>
      isTold(message)
        ? { ...message, content: message.content.filter((block) => !isOfTools(block)) }
        : message,
    )
    .filter(({ content }, index) => content.length > 0 || messages[index]?.content.length === 0);
  return { ...rest, tools: [], messages: left };
}

function isOfTools({ type }: Message['content'][number]): boolean {
  return type === 'tool-call' || type === 'tool-result';
}

/** A whole reply that nobody wishes thinking for is asked for without it, where the model would think by itself and in streams alone. */
function withoutDefaultThinking(request: ChatRequest, traits: ModelTraits): ChatRequest {
  const { stream, settings } = request;
  if (traits.thinksInStreamsOnly !== true || stream || traits.thinksByDefault !== true) return request;
  if (thinksAbout(settings.reasoning, { ...traits, thinksByDefault: false })) return request;
  return { ...request, settings: { ...settings, reasoning: { mode: 'off' } } };
}

const none: readonly string[] = [];

/** What a format says of forced tools is about models that think in its own words. */
function usualRule(
  { forcedTools }: Pick<Codec, 'forcedTools'>,
  { reasoning }: ModelTraits,
): Codec['forcedTools'] {
  return reasoning === undefined || reasoning === 'adaptive' || reasoning === 'budget'
    ? forcedTools
    : undefined;
}

function withoutUnknown(
  request: ChatRequest,
  { members = none }: ModelTraits,
  drop: (path: string) => void,
): Pick<Settled, 'request' | 'unknown'> {
  const { format, extra } = request;
  // Members that mean nothing elsewhere, and those whose names could pass for something else.
  const { $fields: aside, $kept: native, ...fields } = extra?.[format] ?? {};
  const isTaken = (path: string): boolean =>
    path.startsWith('$') || members.includes(path) || members.includes(rootOf(path));
  const refused = Object.keys(fields).filter((path) => !isTaken(path));
  const others = [...namesIn(native).filter((name) => !members.includes(name)), ...namesIn(aside)];
  if (refused.length + others.length === 0) return { request, unknown: none };
  for (const path of [...refused, ...others]) drop(path);
  const kept = { ...only(fields, isTaken), $kept: only(native, (name) => members.includes(name)) };
  return {
    request: { ...request, extra: { ...extra, [format]: kept } },
    unknown: [...refused.map(rootOf), ...others],
  };
}

function namesIn(value: JsonValue | undefined): readonly string[] {
  return isObject(value) ? Object.keys(value) : none;
}

function only(value: JsonValue | undefined, isKept: (name: string) => boolean): JsonObject {
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).filter(([name]) => isKept(name))) as JsonObject;
}

function rootOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path;
}
