import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { checkLegal } from '../../support/legal-generate-content.ts';
import { chat, countTokens, encode, names, readJson, readRequest, target } from './support.ts';
import { tries } from '../../support/tries.ts';

const leaf = fc.constantFrom(
  null,
  0,
  1,
  -1,
  true,
  '',
  'x',
  'user',
  'model',
  'system',
  'STOP',
  'ANY',
  'AUTO',
  '12',
  'image/png',
  'https://a.example/b',
  'gs://b',
);
const key = fc.constantFrom(
  ...'contents parts role text thought thoughtSignature inlineData mimeType data fileData fileUri functionCall functionResponse name args id response output error'.split(
    ' ',
  ),
  ...'systemInstruction tools functionDeclarations parameters googleSearch toolConfig functionCallingConfig mode allowedFunctionNames generationConfig'.split(
    ' ',
  ),
  ...'thinkingConfig thinkingLevel responseSchema responseMimeType topP candidates content finishReason index usageMetadata promptFeedback blockReason'.split(
    ' ',
  ),
  ...'groundingMetadata groundingChunks groundingSupports segment logprobsResult chosenCandidates generate_content_request inline_data $more $content __proto__'.split(
    ' ',
  ),
);
const json = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    leaf,
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(key, tie('any'), { maxKeys: 5 }),
  ),
})).any;
const part = fc.dictionary(key, json, { maxKeys: 3 });
const content = fc.record({ role: leaf, parts: fc.oneof(json, fc.array(part, { maxLength: 3 })) });
const candidate = fc.record({ content, finishReason: leaf, groundingMetadata: json, logprobsResult: json });
const chunk = fc.oneof(
  fc.dictionary(key, json, { maxKeys: 5 }),
  fc.record({ candidates: fc.array(candidate, { maxLength: 2 }), usageMetadata: json }),
);

/** A legal thing with something else in one or two of its places. */
function spoiled(legal: readonly JsonObject[]): fc.Arbitrary<JsonObject> {
  return fc
    .record({
      thing: fc.constantFrom(...legal),
      places: fc.array(fc.tuple(fc.nat(), json), { minLength: 1, maxLength: 2 }),
    })
    .map(({ thing, places }) => {
      const copy = structuredClone(thing);
      for (const [path, value] of places) {
        const spots = spotsOf(copy);
        const spot = spots[path % spots.length];
        if (spot !== undefined) Reflect.set(spot[0], spot[1], value);
      }
      return copy;
    });
}

/** Every place inside a value: what holds it, and under which key. */
function spotsOf(value: unknown): [object, string][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    [value, name] as [object, string],
    ...spotsOf(inner),
  ]);
}

const body = spoiled(names('requests', '.json').map((name) => readRequest(name).body));
const spoiledChunk = spoiled(names('replies', '.json').map((name) => readJson('replies', name)));

/** The result, or undefined when it was refused as it should be; any other error fails the test. */
function refusable<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

test('no body, however strange, does anything but decode or be refused with 400', () => {
  fc.assert(
    fc.property(body, (strange) => {
      for (const codec of [chat, countTokens]) {
        const request = refusable(() => codec.decodeRequest(strange, { model: 'm' }));
        if (request === undefined) continue;
        refusable(() => codec.encodeRequest(request, target()));
        refusable(() =>
          codec.encodeRequest({ ...request, format: 'messages' }, target({ unsupported: 'drop' })),
        );
      }
      expect(() =>
        chat.patch(
          strange as JsonObject,
          { model: 'n', settings: { maxOutput: 1, reasoning: { effort: 'low' } } },
          {},
        ),
      ).not.toThrow();
    }),
    { numRuns: tries(3000) },
  );
});

test('no chunk, however strange, breaks the decoder or makes an illegal stream', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(chunk, spoiledChunk), { maxLength: 4 }), (strange) => {
      const decoder = chat.decodeStream!({});
      const events = refusable(() => [
        ...strange.flatMap((one) => decoder.frame({ data: JSON.stringify(one) })),
        ...decoder.end(),
      ]);
      if (events === undefined) return;
      const plain = JSON.parse(
        JSON.stringify(events, (name, value: unknown) =>
          name === 'extra' || name === 'raw' ? undefined : value,
        ),
      ) as typeof events;
      expect(checkLegal(encode(plain.filter(({ type }) => type !== 'opaque')))).toEqual([]);
      expect(() => encode(events)).not.toThrow();
    }),
    { numRuns: tries(3000) },
  );
});
