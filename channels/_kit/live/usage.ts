/** Reads the token usage of Gemini's Live API, and writes it as OpenAI's Realtime API and Sluice's accounting have it. */
import { isObject, type JsonObject, type JsonValue, type Usage } from 'sluice';

/** Token counts by direction and modality. `input` includes `cached`, and `output` includes `thoughts`. */
export interface LiveUsage {
  readonly input: Parts;
  readonly cached: Parts;
  readonly output: Parts;
  readonly thoughts: number;
}

interface Parts {
  readonly total: number;
  readonly text: number;
  readonly audio: number;
  readonly image: number;
  readonly video: number;
}

const none: Parts = { total: 0, text: 0, audio: 0, image: 0, video: 0 };
/** No tokens. */
export const noUsage: LiveUsage = { input: none, cached: none, output: none, thoughts: 0 };

/** Reads `usageMetadata`: @google/genai 2.32.0, dist/genai.d.ts, `UsageMetadata`. */
export function readLiveUsage(raw: JsonObject): LiveUsage {
  const thoughts = count(raw['thoughtsTokenCount']);
  return {
    input: sum(
      parts(raw['promptTokenCount'], raw['promptTokensDetails']),
      parts(raw['toolUsePromptTokenCount'], raw['toolUsePromptTokensDetails']),
    ),
    cached: parts(raw['cachedContentTokenCount'], raw['cacheTokensDetails']),
    output: sum(parts(raw['responseTokenCount'], raw['responseTokensDetails']), {
      ...none,
      total: thoughts,
      text: thoughts,
    }),
    thoughts,
  };
}

/** Adds the tokens of two messages up. */
export function addUsage(one: LiveUsage, other: LiveUsage): LiveUsage {
  return {
    input: sum(one.input, other.input),
    cached: sum(one.cached, other.cached),
    output: sum(one.output, other.output),
    thoughts: one.thoughts + other.thoughts,
  };
}

/** Returns the `usage` of a `response.done`. */
export function shownUsage({ input, cached, output, thoughts }: LiveUsage): JsonObject {
  return {
    total_tokens: input.total + output.total,
    input_tokens: input.total,
    output_tokens: output.total,
    input_token_details: {
      ...details(input),
      cached_tokens: cached.total,
      ...(cached.total === 0 ? {} : { cached_tokens_details: details(cached) }),
    },
    output_token_details: { ...details(output), ...(thoughts === 0 ? {} : { reasoning_tokens: thoughts }) },
  };
}

/** Returns the usage to charge for where no `response.done` states it. */
export function neutralUsage({ input, cached, output, thoughts }: LiveUsage): Usage {
  const { total: _input, ...inputParts } = input;
  const { total: _output, ...outputParts } = output;
  return {
    input: input.total,
    output: output.total,
    cacheRead: cached.total,
    cacheWrite: 0,
    reasoning: thoughts,
    byModality: { input: inputParts, output: outputParts },
  };
}

function details({ text, audio, image, video }: Parts): JsonObject {
  return {
    text_tokens: text,
    audio_tokens: audio,
    ...(image === 0 ? {} : { image_tokens: image }),
    ...(video === 0 ? {} : { video_tokens: video }),
  };
}

/** Maximum number of tokens of one message, so that a provider's mistake does not become a huge charge. */
const most = 1e9;

function count(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && number > 0 ? Math.min(most, Math.trunc(number)) : 0;
}

/** Splits a total by modality. Tokens without details count as text. */
function parts(total: JsonValue | undefined, list: JsonValue | undefined): Parts {
  const found = { ...none, total: count(total) };
  for (const one of Array.isArray(list) ? list.slice(0, 20).filter(isObject) : []) {
    const name = String(one['modality']).toLowerCase();
    if (name === 'audio' || name === 'image' || name === 'video') found[name] += count(one['tokenCount']);
  }
  found.text = Math.max(0, found.total - found.audio - found.image - found.video);
  return found;
}

function sum(one: Parts, other: Parts): Parts {
  return {
    total: one.total + other.total,
    text: one.text + other.text,
    audio: one.audio + other.audio,
    image: one.image + other.image,
    video: one.video + other.video,
  };
}
