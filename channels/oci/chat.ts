/** Parts that the codecs of all native chat formats of OCI Generative AI share: settings, images, functions and usage. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { unsupportedContent, type EncodeTarget } from 'sluice/channel-kit';
import { knownMembers } from '../_kit/dialect/chat-dialect.ts';

/** Members of chat completions that a native format knows. */
export interface NativeMembers {
  /** Members of chat completions by their names here, whose values are the same. */
  readonly settings: Readonly<Record<string, string>>;
  /** Settings that need more than a new name. */
  readonly others: readonly string[];
}

/** Members that all of them know, by their names here. */
export const commonSettings = {
  max_tokens: 'maxTokens',
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  seed: 'seed',
} as const;

/**
 * Returns the members of a body of chat completions that a format knows, and the part of `chatRequest` that all formats share. Other
 * members are reported as dropped.
 */
export function beginChat(
  { model: _model, stream, stream_options: _options, ...body }: JsonObject,
  { settings, others }: NativeMembers,
  { drop }: EncodeTarget,
): { readonly known: JsonObject; readonly begun: JsonObject } {
  const known = knownMembers(body, new Set([...Object.keys(settings), ...others]), drop);
  return { known, begun: { ...streaming(stream), ...renamed(known, settings) } };
}

/** Returns the members that select streaming. A stream reports usage only on request. */
function streaming(stream: JsonValue | undefined): JsonObject {
  return stream === true ? { isStream: true, streamOptions: { isIncludeUsage: true } } : { isStream: false };
}

/** Returns the members that are given, by other names. */
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

/** Returns a picture as part of a message. */
export function imagePart({ url = '', detail }: JsonObject): JsonObject {
  const how = typeof detail === 'string' ? { detail: detail.toUpperCase() } : {};
  return { type: 'IMAGE_URL', imageUrl: { url, ...how } };
}

/** Rejects an unsupported part of a message, or reports it as dropped. */
export function noPart({ type }: JsonObject, { unsupported, drop }: EncodeTarget): readonly JsonObject[] {
  if (unsupported === 'refuse')
    throw unsupportedContent('messages', `content of type ${String(type)}`, 'oci');
  drop('messages', 'content');
  return [];
}

/** Returns name, description and parameters of a function. */
export function functionOf({ function: own }: JsonObject): JsonObject {
  const { name, description, parameters } = isObject(own) ? own : {};
  return {
    name: name ?? '',
    ...(typeof description === 'string' ? { description } : {}),
    parameters: parameters ?? { type: 'object', properties: {} },
  };
}

/** https://github.com/oracle/oci-typescript-sdk/blob/master/lib/generativeaiinference/lib/model/usage.ts */
export function usageOf(usage: JsonValue | undefined): JsonObject {
  if (!isObject(usage)) return {};
  const { promptTokens, completionTokens, promptTokensDetails, completionTokensDetails } = usage;
  const cached = isObject(promptTokensDetails) ? promptTokensDetails['cachedTokens'] : undefined;
  const details = renamed(isObject(completionTokensDetails) ? completionTokensDetails : {}, {
    reasoningTokens: 'reasoning_tokens',
    acceptedPredictionTokens: 'accepted_prediction_tokens',
    rejectedPredictionTokens: 'rejected_prediction_tokens',
  });
  return {
    usage: {
      prompt_tokens: promptTokens ?? 0,
      completion_tokens: completionTokens ?? 0,
      ...(typeof cached === 'number' ? { prompt_tokens_details: { cached_tokens: cached } } : {}),
      ...(Object.keys(details).length === 0 ? {} : { completion_tokens_details: details }),
    },
  };
}
