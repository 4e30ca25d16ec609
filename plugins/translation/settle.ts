/** Adapts a decoded request to the traits of a model before it is encoded: tools, output limit, thinking, streaming and unknown members. */
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

/** A request that fits the traits of a model, before it is encoded. */
export interface Settled {
  readonly request: ChatRequest;
  readonly traits: ModelTraits;
  /** True when a stream is requested from the provider, also for a whole response where the model thinks in streams only. */
  readonly stream: boolean;
  /** Members at the top of the client's body that contain something unknown to the provider, which it would refuse. */
  readonly unknown: readonly string[];
}

/** Returns the request with `stream` as in the call, which a plugin may have changed. */
export function asStreamed(request: ChatRequest, { stream }: Pick<Call, 'stream'>): ChatRequest {
  return request.stream === stream ? request : { ...request, stream };
}

/**
 * Adapts a request to the traits of a model where no format is concerned. Changes are reported to `drop` by neutral paths, unknown members by the
 * client's.
 */
export function settle(
  request: ChatRequest,
  traits: ModelTraits,
  codec: Pick<Codec, 'format' | 'forcedTools'>,
  chosen: TranslationOptions,
  drop: (path: string) => void,
): Settled {
  const withTools = traits.tools === false ? withoutTools(request, chosen, drop) : request;
  const limited = clampOutput(withTools, traits, chosen, drop);
  const withFunctionTools = settleFunctionTools(
    withoutDefaultThinking(limited, traits),
    traits,
    codec.format,
    drop,
  );
  const settled = settleForcedTools(withFunctionTools, traits, usualRule(codec, traits), drop);
  const { stream, settings, operation } = settled.request;
  const isStream =
    stream ||
    (traits.thinksInStreamsOnly === true && operation === 'chat' && thinksAbout(settings.reasoning, traits));
  if (traits.refusesUnknown !== true || request.format !== codec.format)
    return { ...settled, stream: isStream, unknown: none };
  return { ...settled, stream: isStream, ...withoutUnknown(settled.request, traits, drop) };
}

/**
 * Returns the request without tools, tool calls and results where the option `unsupported` is `drop`. Otherwise throws 400, because a client that sends
 * tools expects calls of them.
 */
function withoutTools(
  request: ChatRequest,
  { unsupported }: TranslationOptions,
  drop: (path: string) => void,
): ChatRequest {
  const { tools, toolChoice: _choice, messages, ...rest } = request;
  const hasTools = ({ content }: Message): boolean => content.some(isOfTools);
  if (tools.length === 0 && !messages.some(hasTools)) return request;
  if (unsupported === 'refuse')
    throw new GatewayError(
      'unsupported_tool',
      'The channel for this model does not support tools. Use another model.',
      {
        param: tools.length === 0 ? 'messages' : 'tools',
      },
    );
  if (tools.length > 0) drop('tools');
  for (const { at } of messages.filter(hasTools)) drop(at ?? 'messages');
  const left = messages
    .map((message) =>
      hasTools(message)
        ? { ...message, content: message.content.filter((block) => !isOfTools(block)) }
        : message,
    )
    .filter(({ content }, index) => content.length > 0 || messages[index]?.content.length === 0);
  return { ...rest, tools: [], messages: left };
}

function isOfTools({ type }: Message['content'][number]): boolean {
  return type === 'tool-call' || type === 'tool-result';
}

/** Disables reasoning for a response that is not streamed, if the client does not request it, and the model reasons by default but supports that only in streams. */
function withoutDefaultThinking(request: ChatRequest, traits: ModelTraits): ChatRequest {
  const { stream, settings } = request;
  if (traits.thinksInStreamsOnly !== true || stream || traits.thinksByDefault !== true) return request;
  if (thinksAbout(settings.reasoning, { ...traits, thinksByDefault: false })) return request;
  return { ...request, settings: { ...settings, reasoning: { mode: 'off' } } };
}

const none: readonly string[] = [];

/** Returns the format's rule for forced tools, which applies to models whose thinking is controlled by the format's own members. */
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
