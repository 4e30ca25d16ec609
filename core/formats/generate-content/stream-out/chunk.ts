/** Gathers the parts of one chunk of a stream. */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { levels } from '../wire.ts';

interface CandidateDraft {
  readonly fields: MutableObject;
  readonly parts: MutableObject[];
  /** The part that a text block has in this chunk. */
  readonly partOf: Map<number, MutableObject>;
}

/** One chunk being filled: the parts and fields of its candidates, and fields of the chunk itself. */
export class Chunk {
  readonly #candidates = new Map<number, CandidateDraft>();
  readonly #fields: MutableObject = {};

  #candidate(choice: number): CandidateDraft {
    let draft = this.#candidates.get(choice);
    if (draft === undefined) {
      draft = { fields: {}, parts: [], partOf: new Map() };
      this.#candidates.set(choice, draft);
    }
    return draft;
  }

  /** Returns the fields of a candidate, which is in this chunk from now on. */
  fields(choice: number): MutableObject {
    return this.#candidate(choice).fields;
  }

  add(choice: number, part: MutableObject): void {
    this.#candidate(choice).parts.push(part);
  }

  /** Returns the part of a block of words, begun when this chunk has none. */
  wordsOf(choice: number, block: number, kind: 'text' | 'reasoning'): MutableObject {
    const { parts, partOf } = this.#candidate(choice);
    let part = partOf.get(block);
    if (part === undefined) {
      part = kind === 'reasoning' ? { text: '', thought: true } : { text: '' };
      partOf.set(block, part);
      parts.push(part);
    }
    return part;
  }

  /** Puts extras of an event where they belong; those of the part only when there is one. */
  take(fields: JsonObject, choice: number | undefined, part?: MutableObject): void {
    for (const key of Object.keys(fields)) {
      const value = fields[key];
      if (value === undefined || key.startsWith('$')) continue;
      if (key.startsWith(levels.chunk)) this.#fields[key.slice(levels.chunk.length)] = value;
      else if (key.startsWith(levels.part)) {
        if (part !== undefined) part[key.slice(levels.part.length)] = value;
      } else if (!takeNested(part, key, value) && choice !== undefined) this.fields(choice)[key] = value;
    }
  }

  /** Fields of the chunk itself. */
  put(fields: JsonObject): void {
    Object.assign(this.#fields, fields);
  }

  /** Returns the chunk as JSON. `contentOf`: returns the content of a candidate without parts and without a content of its own. */
  json(contentOf: (choice: number) => JsonValue | undefined): MutableObject {
    const written: MutableObject = {};
    const candidates = [...this.#candidates]
      .toSorted(([a], [b]) => a - b)
      .map(([choice, draft]) => candidateJson(choice, draft, contentOf));
    if (candidates.length > 0) written.candidates = candidates;
    return Object.assign(written, this.#fields);
  }
}

function candidateJson(
  index: number,
  { fields, parts }: CandidateDraft,
  contentOf: (choice: number) => JsonValue | undefined,
): JsonObject {
  const { content: own, ...rest } = fields;
  const content = parts.length > 0 ? { parts, role: 'model' } : (own ?? contentOf(index));
  return { ...(content === undefined ? {} : { content }), ...rest, index };
}

const nests = ['functionCall.', 'inlineData.', 'fileData.'];

function takeNested(part: MutableObject | undefined, key: string, value: JsonValue): boolean {
  const nest = nests.find((prefix) => key.startsWith(prefix));
  if (nest === undefined) return false;
  const inner = part?.[nest.slice(0, -1)];
  if (isObject(inner)) (inner as MutableObject)[key.slice(nest.length)] = value;
  return true;
}
