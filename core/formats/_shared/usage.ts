import { isObject, parseObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';

/** A number of tokens. Some providers write it as text; anything else counts as none. */
export function tokenCount(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : 0;
}

/** Token counts as most operations besides chat tell them: `{input_tokens, output_tokens}`, or in the words of chat completions. */
export function readPlainUsage(raw: JsonObject, format: string): Usage {
  const input = tokenCount(raw.input_tokens) || tokenCount(raw.prompt_tokens);
  const output = tokenCount(raw.output_tokens) || tokenCount(raw.completion_tokens);
  const total = tokenCount(raw.total_tokens);
  return {
    input: input === 0 && output === 0 ? total : input,
    output,
    cacheRead: 0,
    cacheWrite: 0,
    reasoning: 0,
    format,
    raw,
  };
}

/** What is said of a reply whose usage is unknown. */
export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** True for a chunk of a completion that carries usage and nothing else. */
export function isUsageOnly(data: string): boolean {
  if (!data.includes('"usage"')) return false;
  const body = parseObject(data);
  return (
    body !== undefined && isObject(body.usage) && Array.isArray(body.choices) && body.choices.length === 0
  );
}

/** The member by which a streamed request for a completion asks for usage; undefined where it is not streamed, or asks already. */
export function askUsage(body: JsonObject): JsonObject | undefined {
  if (body.stream !== true) return undefined;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return options.include_usage === true ? undefined : { stream_options: { ...options, include_usage: true } };
}

/** Reads usage from the frames and whole bodies of a pass-through, each for itself. What does not contain `mark` is not parsed. */
export function tapping(mark: string, usageIn: (body: JsonObject) => Usage | undefined): () => UsageTap {
  return () => ({
    read(data) {
      const body = data.includes(mark) ? parseObject(data) : undefined;
      return body === undefined ? undefined : usageIn(body);
    },
  });
}
