import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { objectsOf, type DialectReply } from './chat-dialect.ts';

/** Length of the text of a choice, and the start of the text that the next reference covers. */
interface TextPosition {
  length: number;
  from: number;
}

/** Decodes content as parts: reasoning, text, and citations. */
export class MistralReply implements DialectReply {
  readonly #positions = new Map<JsonValue, TextPosition>();

  chunks({ choices, usage, ...top }: JsonObject): readonly JsonObject[] {
    const chunks = objectsOf(choices)
      .flatMap((choice) => this.#deltas(choice))
      .map((choice) => ({ ...top, choices: [choice] }));
    const used = isObject(usage) ? [{ ...top, choices: [], usage: usageOf(usage) }] : [];
    return chunks.length + used.length === 0 ? [{ ...top, choices: [] }] : [...chunks, ...used];
  }

  /** Returns a choice as several choices, one for each sequence of parts of a kind. The last one has the finish reason. */
  #deltas({ delta, message, finish_reason: finish, index = 0, ...rest }: JsonObject): readonly JsonObject[] {
    const holder = isObject(delta) ? delta : isObject(message) ? message : {};
    const { content, ...others } = holder;
    const position = this.#positions.get(index) ?? { length: 0, from: 0 };
    this.#positions.set(index, position);
    if (typeof content === 'string') position.length += content.length;
    const deltas = Array.isArray(content)
      ? [...objectsOf(content).flatMap((part) => deltasOfPart(part, position)), others]
      : [holder];
    return deltas.map((one, number) => ({
      ...rest,
      index,
      delta: one,
      finish_reason: number === deltas.length - 1 ? (finish ?? null) : null,
    }));
  }
}

/** Converts a part into deltas of chat completions. */
function deltasOfPart(part: JsonObject, position: TextPosition): readonly JsonObject[] {
  const { type, signature, url, title } = part;
  switch (type) {
    case 'text':
      position.length += typeof part['text'] === 'string' ? part['text'].length : 0;
      return [{ content: [part] }];
    case 'thinking':
      return [
        { content: [part] },
        ...(typeof signature === 'string' && signature !== ''
          ? [{ reasoning_details: [{ type: 'reasoning.text', text: '', signature }] }]
          : []),
      ];
    case 'reference':
    case 'tool_reference': {
      const { from, length } = position;
      position.from = length;
      const address = {
        ...(typeof title === 'string' ? { title } : {}),
        ...(typeof url === 'string' ? { url } : {}),
      };
      const citation = { start_index: from, end_index: length, ...address };
      const { type: _type, ...source } = part;
      return [{ annotations: [{ type: 'url_citation', url_citation: citation, ...source }] }];
    }
    default:
      return [];
  }
}

/** Returns the cache under the name that most have for it. */
function usageOf(usage: JsonObject): JsonObject {
  const { num_cached_tokens: cached, prompt_tokens_details: details } = usage;
  return typeof cached === 'number' && !isObject(details)
    ? { ...usage, prompt_tokens_details: { cached_tokens: cached } }
    : usage;
}
