/** Selects the format in which a target is called, and the traits of its model in that format. */
import { thinksWithFunctions } from '../model/thinks.ts';
import type { Call, Target } from './author/call.ts';
import { chatOutlineOf } from './call.ts';

/**
 * Returns the formats in which a target answers chats, best first. Empty where it answers none.
 *
 * @example
 * const passesThrough = chatFormats(target).includes(call.format.name);
 */
export function chatFormats({ channel, traits }: Target): readonly string[] {
  return traits.formats ?? channel.speaks.chat ?? [];
}

/**
 * Returns the format of `spoken` in which a target is called: for a call with functions the one in which the model reasons about them; else
 * the client's own where it is among them; else the one in which the model supports the requested server tools; else the first. Undefined
 * where there is none. Default of `spoken`: the formats of the target for chats.
 *
 * @example
 * const format = call.target && formatFor(call, call.target);
 */
export function formatFor(
  call: Call,
  target: Target,
  formats: readonly string[] = chatFormats(target),
): string | undefined {
  const { serverTools, functionTools } = target.traits;
  const { format: own } = call.codec;
  if (functionTools !== undefined && functionTools !== own && formats.includes(functionTools)) {
    if (call.operation === 'chat' && thinksWithFunctions(chatOutlineOf(call), target.traits))
      return functionTools;
  }
  if (formats.includes(own)) return own;
  const isFitting = serverTools !== undefined && formats.includes(serverTools) && asksForServerTools(call);
  return isFitting ? serverTools : formats[0];
}

/** Returns true when the call has tools that the provider runs: web search or code execution. */
function asksForServerTools(call: Call): boolean {
  return (
    call.operation === 'chat' &&
    chatOutlineOf(call).tools.some(({ type }) => type === 'web-search' || type === 'code-execution')
  );
}

/**
 * Returns the target with the traits that its model has in this format.
 *
 * @example
 * const { traits } = targetIn(target, 'messages');
 */
export function targetIn<Own extends Target>(target: Own, format: string): Own {
  const own = target.traits.byFormat?.[format];
  if (own === undefined) return target;
  const { inputLimit, outputLimit, statesOutputLimit, imageTokens, fetchesUrls } = target.traits;
  const alike = {
    ...(inputLimit === undefined ? {} : { inputLimit }),
    ...(outputLimit === undefined ? {} : { outputLimit }),
    ...(statesOutputLimit === undefined ? {} : { statesOutputLimit }),
    ...(imageTokens === undefined ? {} : { imageTokens }),
    ...(fetchesUrls === undefined ? {} : { fetchesUrls }),
  };
  return { ...target, traits: { ...alike, ...own } };
}
