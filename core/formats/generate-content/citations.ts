/** Decodes and encodes `groundingMetadata` of generateContent: sources, and the UTF-8 byte ranges of the text that they support. */
import type { Citation } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { listOf, objectsOf } from '../_shared/fields.ts';

/** Decodes the sources in `groundingMetadata`, each with the range of text that it supports. Offsets there count bytes of UTF-8. */
export function readGrounding(value: JsonValue | undefined, text: string): readonly Citation[] {
  if (!isObject(value)) return [];
  const chunks = listOf(value.groundingChunks);
  const citations: Citation[] = [];
  const used = new Set<number>();
  const at = characterAt(text);
  for (const support of objectsOf(value.groundingSupports)) {
    const segment = isObject(support.segment) ? support.segment : {};
    for (const index of listOf(support.groundingChunkIndices)) {
      const source = typeof index === 'number' ? readChunk(chunks[index]) : undefined;
      if (source === undefined || typeof index !== 'number') continue;
      used.add(index);
      citations.push({
        ...source,
        ...(typeof segment.text === 'string' ? { quote: segment.text } : {}),
        ...(segment.endIndex === undefined
          ? {}
          : { start: at(segment.startIndex), end: at(segment.endIndex) }),
      });
    }
  }
  chunks.forEach((chunk, index) => {
    const source = used.has(index) ? undefined : readChunk(chunk);
    if (source !== undefined) citations.push(source);
  });
  return citations;
}

function readChunk(chunk: JsonValue | undefined): Citation | undefined {
  if (!isObject(chunk)) return undefined;
  const source = [chunk.web, chunk.retrievedContext, chunk.maps, chunk.image].find(isObject);
  if (source === undefined) return undefined;
  const { uri, title } = source;
  if (typeof uri !== 'string' && typeof title !== 'string') return undefined;
  return {
    ...(typeof uri === 'string' ? { url: uri } : {}),
    ...(typeof title === 'string' ? { title } : {}),
  };
}

/** Converts byte offsets in a text to character offsets. The text is encoded once. */
function characterAt(text: string): (offset: JsonValue | undefined) => number {
  let bytes: Buffer | undefined;
  return (offset) => {
    const count = typeof offset === 'string' ? Number(offset) : offset;
    if (typeof count !== 'number' || !(count > 0)) return 0;
    return (bytes ??= Buffer.from(text)).toString('utf8', 0, count).length;
  };
}

/** A citation, and the text of its block up to the citation or beyond. */
export interface Cited {
  readonly citation: Citation;
  readonly text: () => string;
}

/** Citations of another format as `groundingMetadata`. */
export function writeGrounding(cited: readonly Cited[]): JsonObject {
  const chunks: JsonObject[] = [];
  const numbers = new Map<string, number>();
  const supports: JsonObject[] = [];
  for (const { citation, text } of cited) {
    const source = `${citation.url ?? ''}\n${citation.title ?? ''}`;
    let number = numbers.get(source);
    if (number === undefined) {
      number = chunks.push(writeChunk(citation)) - 1;
      numbers.set(source, number);
    }
    const segment = writeSegment(citation, text());
    if (segment !== undefined) supports.push({ segment, groundingChunkIndices: [number] });
  }
  return { groundingChunks: chunks, ...(supports.length === 0 ? {} : { groundingSupports: supports }) };
}

function writeChunk({ url, title, quote }: Citation): JsonObject {
  const named = title === undefined ? {} : { title };
  if (url !== undefined) return { web: { uri: url, ...named } };
  return { retrievedContext: { ...named, ...(quote === undefined ? {} : { text: quote }) } };
}

function writeSegment({ start, end }: Citation, text: string): JsonObject | undefined {
  if (start === undefined || end === undefined || end <= start) return undefined;
  const startIndex = Buffer.byteLength(text.slice(0, start));
  const quoted = text.slice(start, end);
  return {
    ...(startIndex === 0 ? {} : { startIndex }),
    endIndex: startIndex + Buffer.byteLength(quoted),
    text: quoted,
  };
}
