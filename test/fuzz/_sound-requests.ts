import * as fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';

/** Names that a field nobody knows may have: some read like members of objects, some like notes of the gateway’s own. */
const oddNames = fc.oneof(
  fc.constantFrom(
    'odd',
    'constructor',
    'toString',
    'hasOwnProperty',
    '$single',
    '$purpose',
    '$limits',
    '$usual',
    '0',
  ),
  fc.string({ unit: fc.constantFrom(...'abcxyz_.-'), minLength: 1, maxLength: 8 }),
);

const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>;

/** Fields that no format knows, with the given names left out. */
export function oddFields(known: readonly string[]): fc.Arbitrary<JsonObject> {
  const names = new Set(known);
  return fc
    .uniqueArray(
      fc.tuple(
        oddNames.filter((name) => !names.has(name)),
        json,
      ),
      { selector: ([name]) => name, maxLength: 3 },
    )
    .map((entries) => Object.fromEntries(entries));
}

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const tokens = fc.array(fc.nat(100_000), { minLength: 1, maxLength: 5 });
const optional = { requiredKeys: [] as never[] };

const embedFields = {
  dimensions: fc.integer({ min: 1, max: 3072 }),
  encoding_format: fc.constantFrom('float', 'base64'),
  user: words,
  input_type: fc.constantFrom('query', 'search_document', 'clustering', 'CLASSIFICATION', 'nobody-knows'),
  task: fc.constantFrom('retrieval.passage', 'separation', 'nobody-knows'),
};

const embedInput = (texts: boolean): fc.Arbitrary<JsonValue> => {
  const text: fc.Arbitrary<JsonValue> = fc.oneof(words, fc.array(words, { minLength: 1, maxLength: 4 }));
  return texts
    ? text
    : fc.oneof(text, tokens, fc.array(fc.oneof(words, tokens), { minLength: 1, maxLength: 4 }));
};

/** Sound requests for embeddings; of texts alone where that is asked for. */
export function embedRequests(texts = false): fc.Arbitrary<JsonObject> {
  return (
    fc
      .tuple(
        fc.record({ model: words, input: embedInput(texts) }),
        fc.record(embedFields, optional),
        oddFields(['model', 'input', ...Object.keys(embedFields)]),
      )
      // A list of numbers is one list of tokens: a list of lists begins with a list.
      .filter(
        ([{ input }]) =>
          !Array.isArray(input) ||
          typeof input[0] !== 'number' ||
          input.every((one) => typeof one === 'number'),
      )
      .map(([core, more, odd]) => ({ ...core, ...more, ...odd }) as JsonObject)
  );
}

const rerankFields = {
  top_n: fc.integer({ min: 1, max: 9 }),
  return_documents: fc.boolean(),
  max_chunks_per_doc: fc.nat(9),
  max_tokens_per_doc: fc.nat(900),
  overlap_tokens: fc.nat(9),
  truncation: fc.boolean(),
};

/** Sound requests to rerank. */
export const rerankRequests: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.record({
      model: words,
      query: words,
      documents: fc.array(fc.oneof(words, fc.record({ text: words, title: words })), {
        minLength: 1,
        maxLength: 5,
      }),
    }),
    fc.record(rerankFields, optional),
    fc.option(fc.constantFrom(['title'], ['title', 'text']), { nil: undefined }),
    oddFields([
      'model',
      'query',
      'documents',
      'top_k',
      'rank_fields',
      'max_chunk_per_doc',
      ...Object.keys(rerankFields),
    ]),
  )
  .map(
    ([core, more, fields, odd]) =>
      ({ ...core, ...more, ...(fields === undefined ? {} : { rank_fields: fields }), ...odd }) as JsonObject,
  );

/** Sound questions for a verdict. */
export const moderationRequests: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.record({
      model: words,
      input: fc.oneof(
        words,
        fc.array(words, { minLength: 1, maxLength: 4 }),
        fc.array(fc.record({ type: fc.constant('text'), text: words }), { minLength: 1, maxLength: 3 }),
      ),
    }),
    oddFields(['model', 'input']),
  )
  .map(([core, odd]) => ({ ...core, ...odd }) as JsonObject);

const speechFields = {
  response_format: fc.constantFrom('mp3', 'pcm', 'nobody-knows'),
  speed: fc.double({ min: 0.25, max: 4, noNaN: true }),
  instructions: words,
};

/** Sound requests for speech. */
export const speechRequests: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.record({ model: words, input: words, voice: fc.oneof(words, fc.record({ id: words })) }),
    fc.record(speechFields, optional),
    oddFields(['model', 'input', 'voice', 'stream_format', ...Object.keys(speechFields)]),
  )
  .map(([core, more, odd]) => ({ ...core, ...more, ...odd }) as JsonObject);
