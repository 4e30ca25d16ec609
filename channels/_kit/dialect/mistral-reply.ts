import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { objectsOf, type DialectReply } from './chat-dialect.ts';

/** How much text an answer has, and where what the next reference vouches for begins. */
interface Said {
  length: number;
  from: number;
}

/** Reads content as parts: what the model thinks, what it says, and where it has that from. */
export class MistralReply implements DialectReply {
  readonly #said = new Map<JsonValue, Said>();

  chunks({ choices, usage, ...top }: JsonObject): readonly JsonObject[] {
    const chunks = objectsOf(choices)
      .flatMap((choice) => this.#deltas(choice))
      .map((choice) => ({ ...top, choices: [choice] }));
    const used = isObject(usage) ? [{ ...top, choices: [], usage: usageOf(usage) }] : [];
    return chunks.length + used.length === 0 ? [{ ...top, choices: [] }] : [...chunks, ...used];
  }

  /** A choice as one choice for each run of parts that belong together; the last of them says why it ended. */
  #deltas({ delta, message, finish_reason: finish, index = 0, ...rest }: JsonObject): readonly JsonObject[] {
    const holder = isObject(delta) ? delta : isObject(message) ? message : {};
    const { content, ...others } = holder;
    const said = this.#said.get(index) ?? { length: 0, from: 0 };
    this.#said.set(index, said);
    if (typeof content === 'string') said.length += content.length;
    const deltas = Array.isArray(content)
      ? [...objectsOf(content).flatMap((part) => spoken(part, said)), others]
      : [holder];
    return deltas.map((one, place) => ({
      ...rest,
      index,
      delta: one,
      finish_reason: place === deltas.length - 1 ? (finish ?? null) : null,
    }));
  }
}

/** What one part says, in the words of chat completions. */
function spoken(part: JsonObject, said: Said): readonly JsonObject[] {
  const { type, signature, url, title } = part;
  switch (type) {
    case 'text':
      said.length += typeof part['text'] === 'string' ? part['text'].length : 0;
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
      const { from, length } = said;
      said.from = length;
      const address = {
        ...(typeof title === 'string' ? { title } : {}),
        ...(typeof url === 'string' ? { url } : {}),
      };
      const place = { start_index: from, end_index: length, ...address };
      const { type: _type, ...source } = part;
      return [{ annotations: [{ type: 'url_citation', url_citation: place, ...source }] }];
    }
    default:
      return [];
  }
}

/** The cache under the name that most have for it. */
function usageOf(usage: JsonObject): JsonObject {
  const { num_cached_tokens: cached, prompt_tokens_details: details } = usage;
  return typeof cached === 'number' && !isObject(details)
    ? { ...usage, prompt_tokens_details: { cached_tokens: cached } }
    : usage;
}
