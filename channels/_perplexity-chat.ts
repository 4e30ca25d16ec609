import type { JsonObject } from 'sluice';
import { isObject } from 'sluice/internal';
import { chatDialect, objectsOf, type DialectReply } from './_chat-dialect.ts';

/** The name under which clients of other formats reach Perplexity. */
export const chatFormat = 'perplexity-chat';

/**
 * Chat completions with the sources of an answer, which the text names by their numbers: `[1]`. They become the citations that other formats
 * have words for; a client of chat completions gets `search_results` and `citations` as they are.
 * https://docs.perplexity.ai/api-reference/chat-completions-post
 */
export const chat = chatDialect({
  format: chatFormat,
  path: () => '/chat/completions',
  request: (body) => body,
  reply: () => new CitedReply(),
  whole({ citations, search_results: results, ...body }) {
    const sources = sourcesIn(results, citations);
    return {
      ...body,
      choices: objectsOf(body['choices']).map((choice) => {
        const message = isObject(choice['message']) ? choice['message'] : {};
        const marks = new Marks();
        marks.read(String(message['content'] ?? ''));
        return { ...choice, message: { ...message, ...cited(sources, marks) } };
      }),
    };
  },
});

/** A stream: all pieces tell the sources that are known by then, and the message as far as it goes. */
class CitedReply implements DialectReply {
  #sources: readonly JsonObject[] = [];
  readonly #marks = new Marks();

  chunks({ citations, search_results: results, ...piece }: JsonObject): readonly JsonObject[] {
    const told = sourcesIn(results, citations);
    if (told.length > 0) this.#sources = told;
    return [
      {
        ...piece,
        choices: objectsOf(piece['choices']).map(({ message: _soFar, ...choice }) => {
          const delta = isObject(choice['delta']) ? choice['delta'] : {};
          if (typeof delta['content'] === 'string') this.#marks.read(delta['content']);
          const isEnd = typeof choice['finish_reason'] === 'string';
          return isEnd ? { ...choice, delta: { ...delta, ...cited(this.#sources, this.#marks) } } : choice;
        }),
      },
    ];
  }
}

/** Sources with their titles, or their addresses alone where no more is told. */
function sourcesIn(results: unknown, citations: unknown): readonly JsonObject[] {
  const known = objectsOf(results).filter(({ url }) => typeof url === 'string');
  if (known.length > 0) return known.map(({ url, title }) => ({ url, title: title ?? '' }));
  const list: readonly unknown[] = Array.isArray(citations) ? citations : [];
  return list.flatMap((url) => (typeof url === 'string' ? [{ url, title: '' }] : []));
}

/** Each source once: with the place where the text first names its number, where it does. */
function cited(sources: readonly JsonObject[], marks: Marks): JsonObject {
  if (sources.length === 0) return {};
  return {
    annotations: sources.map((source, place) => {
      const [start, end] = marks.places.get(place + 1) ?? [0, 0];
      return { type: 'url_citation', url_citation: { ...source, start_index: start, end_index: end } };
    }),
  };
}

/** The longest mark, `[999]`, without its last letter. */
const almostMark = 4;

/** Where a text that comes in pieces names each number first. */
class Marks {
  readonly places = new Map<number, readonly [start: number, end: number]>();
  #length = 0;
  #tail = '';

  read(piece: string): void {
    const text = this.#tail + piece;
    const from = this.#length - this.#tail.length;
    for (const { 0: mark, 1: number, index } of text.matchAll(/\[(\d{1,3})\]/g))
      if (!this.places.has(Number(number)))
        this.places.set(Number(number), [from + index, from + index + mark.length]);
    this.#length += piece.length;
    this.#tail = text.slice(-almostMark);
  }
}
