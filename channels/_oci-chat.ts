import type { JsonObject, JsonValue } from 'sluice';
import { isObject, type EncodeTarget } from 'sluice/internal';
import { knownMembers } from './_chat-dialect.ts';

/** What Oracle's native chats have in common, whichever of their formats a model takes. */
export interface NativeMembers {
  /** Members of chat completions by their names here, whose values are the same. */
  readonly settings: Readonly<Record<string, string>>;
  /** Those that are written from what they mean. */
  readonly others: readonly string[];
}

/** The members of a body of chat completions that a format knows, and the part of `chatRequest` that is in all of them. The others are reported as lost. */
export function beginChat(
  { model: _model, stream, stream_options: _options, ...body }: JsonObject,
  { settings, others }: NativeMembers,
  { lose }: EncodeTarget,
): { readonly known: JsonObject; readonly begun: JsonObject } {
  const known = knownMembers(body, new Set([...Object.keys(settings), ...others]), lose);
  return { known, begun: { ...streaming(stream), ...renamed(known, settings) } };
}

/** Whether to stream; a stream tells its usage when it is asked to. */
function streaming(stream: JsonValue | undefined): JsonObject {
  return stream === true ? { isStream: true, streamOptions: { isIncludeUsage: true } } : { isStream: false };
}

/** The members that are given, by other names. */
export function renamed(body: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, there]) => {
      const value = body[name];
      return value === undefined || value === null ? [] : [[there, value] as const];
    }),
  );
}

/** Sequences that end an answer, as a list; undefined where there are none. */
export function stopsOf({ stop }: JsonObject): JsonValue | undefined {
  return typeof stop === 'string' ? [stop] : (stop ?? undefined);
}

/** https://github.com/oracle/oci-typescript-sdk/blob/master/lib/generativeaiinference/lib/model/usage.ts */
export function usageOf(usage: JsonValue | undefined): JsonObject {
  if (!isObject(usage)) return {};
  const { promptTokens, completionTokens, promptTokensDetails, completionTokensDetails } = usage;
  const cached = isObject(promptTokensDetails) ? promptTokensDetails['cachedTokens'] : undefined;
  const thought = isObject(completionTokensDetails) ? completionTokensDetails['reasoningTokens'] : undefined;
  return {
    usage: {
      prompt_tokens: promptTokens ?? 0,
      completion_tokens: completionTokens ?? 0,
      ...(typeof cached === 'number' ? { prompt_tokens_details: { cached_tokens: cached } } : {}),
      ...(typeof thought === 'number' ? { completion_tokens_details: { reasoning_tokens: thought } } : {}),
    },
  };
}
