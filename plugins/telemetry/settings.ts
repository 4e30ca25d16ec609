/** Makes span attributes from the settings of a chat request, and cuts the texts that clients choose. */
import type { Attributes } from '@opentelemetry/api';
import { isChat, type Call, type ChatRequest, type JsonValue } from 'sluice';

/** Maximum number of characters of a text that a client chooses: a model's name, an id, a value of a setting. */
export const maxWord = 256;

/** Returns the request of a chat without its long texts; undefined for other calls, and for one that was refused before it was read. */
export function outlineOf(call: Call): ChatRequest | undefined {
  try {
    const { outline } = call;
    return isChat(outline) ? outline : undefined;
  } catch {
    // The body was never read, or is no request.
    return undefined;
  }
}

/** Returns the settings of a chat under the names of the GenAI conventions, without those whose values are texts or ids of the client. */
export function settingsAttributes({ settings }: ChatRequest): Attributes {
  const { maxOutput, temperature, topP, topK, choices, seed } = settings;
  const { frequencyPenalty, presencePenalty, reasoning, responseFormat, serviceTier } = settings;
  const level = reasoning?.effort ?? reasoning?.mode;
  const output = responseFormat?.type === 'json-schema' ? 'json' : responseFormat?.type;
  return present({
    'gen_ai.request.max_tokens': maxOutput,
    'gen_ai.request.temperature': temperature,
    'gen_ai.request.top_p': topP,
    'gen_ai.request.top_k': topK,
    'gen_ai.request.choice.count': choices === 1 ? undefined : choices,
    'gen_ai.request.seed': seed,
    'gen_ai.request.frequency_penalty': frequencyPenalty,
    'gen_ai.request.presence_penalty': presencePenalty,
    'gen_ai.request.reasoning.level': level === undefined ? undefined : word(level),
    'gen_ai.request.service_tier': serviceTier === undefined ? undefined : word(serviceTier),
    'gen_ai.output.type': output,
  });
}

/** Returns texts and ids of the client: stop sequences, user, conversation and previous response. */
export function referenceAttributes(call: Call, { settings }: ChatRequest): Attributes {
  const { previous_response_id: previous, conversation } = call.body;
  return present({
    'gen_ai.request.stop_sequences': settings.stop?.slice(0, 16).map(word),
    'user.id': settings.user === undefined ? undefined : word(settings.user),
    'gen_ai.conversation.id': textIn(conversation) ?? textIn(memberOf(conversation, 'id')),
    'gen_ai.request.previous_response.id': textIn(previous),
  });
}

/** Returns the attributes that have a value. */
export function present(attributes: Attributes): Attributes {
  const result: Attributes = {};
  for (const name in attributes) if (attributes[name] !== undefined) result[name] = attributes[name];
  return result;
}

/** Returns a text of a client, cut. */
export function word(text: string): string {
  return text.length <= maxWord ? text : `${text.slice(0, maxWord).toWellFormed()}…`;
}

function textIn(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? word(value) : undefined;
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || !(name in value)) return undefined;
  return (value as Readonly<Record<string, JsonValue>>)[name];
}
