/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import cohere from '../../channels/cohere/index.ts';
import jina from '../../channels/jina.ts';
import voyage from '../../channels/voyage/index.ts';
import audio from '../../core/formats/audio/index.ts';
import embeddings from '../../core/formats/embeddings/index.ts';
import type { Codec, Codecs } from '../../core/sdk/format.ts';
import generateContent from '../../core/formats/generate-content/index.ts';
import moderations from '../../core/formats/moderations/index.ts';
import rerank from '../../core/formats/rerank/index.ts';
import type { ChannelParts, ChannelTools } from '../../core/sdk/define.ts';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import type { GatewayRequest } from '../../core/model/request.ts';
import { encodedBy, thereAndBack } from '../support/one-shot-laws.ts';
import {
  bodiesFor,
  allEndpoints,
  hangUp,
  modelField,
  modelsFor,
  namesNoField,
  openUploads,
  post,
  readRefusal,
  startPlayground,
  type Endpoint,
  type Got,
  type Playground,
} from './_other-operations.ts';
import { near, noise } from './_mutate.ts';
import { embedRequests, moderationRequests, rerankRequests, speechRequests } from './_sound-requests.ts';
import { selectRotating, tries } from '../support/tries.ts';

const seed = 20_261_120;
const endpoints = await allEndpoints();

let ground: Playground;
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
const statuses = new Map<number, number>();

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  ground = await startPlayground({ limits: { depth: 100, values: 100_000, body: 4 * 1024 * 1024 } });
});
afterAll(async () => {
  await ground.close();
  hangUp();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
  const counts = [...statuses].toSorted().map(([status, count]) => `${count} × ${status}`);
  console.log(`fuzzed bodies of other operations, seed ${seed}: ${counts.join(', ')}`);
});

/** A client’s garbage is the client’s fault: told in its own words, and no failure of the gateway or of a provider. */
function expectSane({ format }: Endpoint, answer: Got): void {
  const lines = ground.gateway.lines.splice(0);
  statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  expect([200, 400, 403, 404, 413, 415, 503], answer.text).toContain(answer.status);
  expect(answer.ended).toBe(true);
  if (answer.status === 200)
    expect(answer.text, 'an error of the gateway inside the stream').not.toContain('internal_error');
  else {
    const { param, message } = readRefusal(format.name, answer);
    const isOfField = answer.status === 400 && !/^The (body|request has no body)/.test(message);
    if (isOfField && !namesNoField.has(format.name)) expect(param, answer.text).toBeTypeOf('string');
  }
  const failures = lines.filter(({ level }) => level === 'error' || level === 'fatal');
  expect(failures.map((line) => JSON.stringify(line))).toEqual([]);
  expect(crashes.splice(0)).toEqual([]);
  for (const { method, headers, body, url } of ground.upstream.requests.splice(0)) {
    if (method !== 'POST' || headers['content-type'] !== 'application/json') continue;
    // Whatever the client wrote, no other model is asked than the one that it may use.
    const { model } = JSON.parse(body.toString()) as { readonly model?: unknown };
    expect([url, model]).not.toEqual([url, 'stolen']);
  }
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
}

/** Fields that read like notes of the gateway’s own, and texts that are long, deep or hardly text. */
const extremes = [
  '"$single":true',
  '"$purpose":{"model":"stolen","input":"stolen"}',
  '"$limits":{"model":"stolen","query":"stolen"}',
  '"$format":true',
  '"$encoding":{"a":1}',
  '"$raw":{"model":"stolen"}',
  '"$parts":[["model","stolen"],5]',
  '"$images":[5,{"image_url":5}]',
  '"$text":5',
  '"__proto__":{"polluted":true}',
  '"toString":1',
  `"input":"${'x'.repeat(200_000)}"`,
  `"prompt":"${'😀'.repeat(20_000)}"`,
  `"query":"\\ud83d"`,
  '"input":["\\ud83d","\\u0000"]',
  `"voice":"${'v'.repeat(100_000)}"`,
  `"${'k'.repeat(20_000)}":1`,
  `"deep":${'['.repeat(95)}${']'.repeat(95)}`,
  `"deep":${'{"a":'.repeat(120)}1${'}'.repeat(120)}`,
  `"documents":[${Array(3000).fill('"a"').join(',')}]`,
  `"rank_fields":[${Array(3000).fill('"a"').join(',')}]`,
  '"dimensions":9007199254740991',
  '"dimensions":10000000',
  '"outputDimensionality":1e12',
  '"n":1e9',
  '"top_n":9007199254740991',
  '"speed":1e-400',
  '"size":"99999x99999"',
  '"seconds":"1e999"',
];

const modelsOf = (endpoint: Endpoint): readonly string[] => ['demo', ...modelsFor(endpoint.operation)];

/** The member of a body that names this model, where the body does. */
function named(endpoint: Endpoint, model: string): Record<string, string> {
  const field = modelField(endpoint);
  return field === undefined ? {} : { [field]: model };
}

/** A body near a sound one, with the model’s name put first where the body names it. */
function bodyNear(endpoint: Endpoint): fc.Arbitrary<{ readonly model: string; readonly text: string }> {
  return fc
    .tuple(
      fc.constantFrom(...modelsOf(endpoint), 'no-such-model'),
      fc.constantFrom(...bodiesFor(endpoint)).chain((body) => near(body, 3)),
      fc.option(fc.constantFrom(...extremes), { freq: 3 }),
    )
    .map(([model, text, extreme]) => {
      const first = JSON.stringify(named(endpoint, model)).slice(1, -1);
      const rest = text.slice(1, -1);
      const members = [
        ...(first === '' ? [] : [first]),
        ...(rest === '' ? [] : [rest]),
        ...(extreme === null ? [] : [extreme]),
      ];
      return { model, text: `{${members.join(',')}}` };
    });
}

test('there are paths to try', () => {
  expect(endpoints.length).toBeGreaterThan(15);
});

describe.each(endpoints.map((endpoint) => [endpoint.name, endpoint] as const))('%s', (_name, endpoint) => {
  test('bodies near sound ones are answered, or refused with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(bodyNear(endpoint), async ({ model, text }) => {
        const answer = await post(ground, endpoint.path(model), text);
        expectSane(endpoint, answer);
        if (!endpoint.takesJson) expect(answer.status).toBe(415);
      }),
      { seed, numRuns: endpoint.takesJson ? tries(200) : 5, endOnFailure: false },
    );
  });

  test.runIf(endpoint.takesJson)('what is extreme is answered, or refused with a reason', async () => {
    for (const [turn, model] of modelsOf(endpoint).entries()) {
      for (const extreme of selectRotating(extremes, endpoints.indexOf(endpoint) + turn, 6)) {
        const index = extremes.indexOf(extreme);
        const all = bodiesFor(endpoint);
        const body = { ...named(endpoint, model), ...all[index % all.length] };
        const text = `${JSON.stringify(body).slice(0, -1)},${extreme}}`;
        // oxlint-disable-next-line no-await-in-loop -- one after the other, so that a failure names its cause
        expectSane(endpoint, await post(ground, endpoint.path(model), text));
      }
    }
  });

  test('noise is refused with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(noise, async (bytes) => {
        const answer = await post(ground, endpoint.path('demo'), bytes);
        expectSane(endpoint, answer);
        expect(answer.status).not.toBe(200);
      }),
      { seed, numRuns: tries(100) },
    );
  });

  const sound = modelsOf(endpoint).flatMap((model) =>
    bodiesFor(endpoint).map((body) => [model, body] as const),
  );
  test.runIf(endpoint.takesJson)(
    'sound bodies are still answered, or refused as what the model does not do',
    async () => {
      const answers = await Promise.all(
        sound.map(([model, body]) =>
          post(ground, endpoint.path(model), JSON.stringify({ ...named(endpoint, model), ...body })),
        ),
      );
      for (const answer of answers) expectSane(endpoint, answer);
      // A video that is made anew must be there.
      const expected = endpoint.route.path.includes(':id') ? 404 : 200;
      expect(answers.map(({ status }) => status)).toContain(expected);
      expect(openUploads()).toEqual([]);
    },
  );
});

/** The codec, which is there. */
function known<R extends GatewayRequest>(codec: Codec<R> | undefined): Codec<R> {
  if (codec === undefined) throw new Error('There is no such codec.');
  return codec;
}

/** The codecs of a channel’s own; making them needs no more of the gateway than its keys. */
const tools = { keys: ['key'] } as unknown as ChannelTools;
const codecsOf = ({ spec }: typeof cohere | typeof jina | typeof voyage): Codecs =>
  (spec.setup({}, tools) as ChannelParts).codecs ?? {};
const ownCohere = codecsOf(cohere);
const ownJina = codecsOf(jina);
const ownVoyage = codecsOf(voyage);

const embedCodec = known(embeddings.codecs.embed);
const contentCodec = known(generateContent.codecs.embed);
const rerankCodec = known(rerank.codecs.rerank);

/** Fields that a codec that does not know them names as lost: those that begin like a note are no field to anybody. */
const odd = (body: JsonObject, names: ReadonlySet<string>): readonly string[] =>
  Object.keys(body).filter((name) => !names.has(name) && !name.startsWith('$'));

const purposeWords: Readonly<Record<string, string>> = {
  query: 'RETRIEVAL_QUERY',
  search_document: 'RETRIEVAL_DOCUMENT',
  clustering: 'CLUSTERING',
  CLASSIFICATION: 'CLASSIFICATION',
  'retrieval.passage': 'RETRIEVAL_DOCUMENT',
  separation: 'CLUSTERING',
};
const wordFor = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' ? purposeWords[value] : undefined;

describe('a sound request, read and written again', () => {
  const options = { seed, numRuns: tries(500) };

  test('is the same in its own format, unknown fields included, and nothing is lost', () => {
    const same = (codec: Codec, requests: fc.Arbitrary<JsonObject>): void =>
      fc.assert(
        fc.property(requests, (body) => {
          expect(thereAndBack(codec, body)).toEqual({ body, losses: [] });
        }),
        options,
      );
    same(embedCodec as Codec, embedRequests());
    same(known(moderations.codecs.moderate) as Codec, moderationRequests);
    same(known(audio.codecs.speak) as Codec, speechRequests);
  });

  test('to rerank is the same but for what the gateway does by itself', () => {
    fc.assert(
      fc.property(rerankRequests, (body) => {
        const documents = body.documents as readonly JsonValue[];
        const { top_n: topN } = body;
        expect(thereAndBack(rerankCodec, body)).toEqual({
          body: {
            ...body,
            return_documents: false,
            ...(typeof topN === 'number' ? { top_n: Math.min(topN, documents.length) } : {}),
          },
          losses: [],
        });
      }),
      options,
    );
  });

  test('for embeddings becomes a batch of generateContent, and what that cannot say is named', () => {
    const knownFields = new Set([
      'model',
      'input',
      'dimensions',
      'encoding_format',
      'input_type',
      'task',
      'user',
    ]);
    fc.assert(
      fc.property(embedRequests(true), (body) => {
        const { encoded, losses } = encodedBy(embedCodec, contentCodec, body);
        const purpose = wordFor(body.input_type) ?? wordFor(body.task);
        const vendor = purpose === undefined ? ['input_type', 'task'].filter((name) => name in body) : [];
        expect(losses.toSorted()).toEqual(
          [...odd(body, knownFields), ...vendor, ...('user' in body ? ['user'] : [])].toSorted(),
        );
        const model = `models/${String(body.model).replace(/^models\//, '')}`;
        expect(encoded.body).toEqual({
          requests: [body.input].flat().map((text) => ({
            model,
            content: { parts: [{ text }] },
            ...(purpose === undefined ? {} : { taskType: purpose }),
            ...(body.dimensions === undefined ? {} : { outputDimensionality: body.dimensions }),
          })),
        });
      }),
      options,
    );
  });

  test('of generateContent becomes one for embeddings, and comes back as it was', () => {
    const content = fc.record({
      parts: fc.array(fc.record({ text: fc.string({ minLength: 1 }) }), { minLength: 1, maxLength: 3 }),
    });
    const request = fc
      .tuple(
        fc.array(content, { minLength: 1, maxLength: 3 }),
        fc.record(
          {
            taskType: fc.constantFrom('RETRIEVAL_QUERY', 'CLUSTERING'),
            title: fc.string(),
            outputDimensionality: fc.integer({ min: 1, max: 3072 }),
          },
          { requiredKeys: [] },
        ),
      )
      .map(([contents, settings]) => contents.map((one) => ({ content: one, ...settings })));
    fc.assert(
      fc.property(request, (requests) => {
        const params = { model: 'm' };
        const own = encodedBy(contentCodec, contentCodec, { requests }, params);
        expect(own).toMatchObject({
          encoded: { body: { requests: requests.map((one) => ({ ...one, model: 'models/m' })) } },
          losses: [],
        });
        const { encoded, losses } = encodedBy(contentCodec, embedCodec, { requests }, params);
        const texts = requests.map(({ content: { parts } }) => parts.map(({ text }) => text).join('\n'));
        const [first] = requests;
        expect(encoded.body).toEqual({
          model: 'm',
          input: texts.length === 1 ? texts[0] : texts,
          ...(first?.outputDimensionality === undefined ? {} : { dimensions: first.outputDimensionality }),
        });
        expect(losses).toEqual(['taskType', 'title'].filter((name) => first !== undefined && name in first));
      }),
      options,
    );
  });

  test.each([
    ['cohere', known(ownCohere.embed), 'input_type', { task: 'RETRIEVAL_QUERY' }, 'search_query', []],
    ['jina', known(ownJina.embed), 'task', { task: 'RETRIEVAL_QUERY' }, 'retrieval.query', []],
    ['jina', known(ownJina.embed), 'task', { task: 'FACT_VERIFICATION' }, undefined, ['taskType']],
    ['jina', known(ownJina.embed), 'task', { task: 'text-matching-2' }, 'text-matching-2', []],
    ['voyage', known(ownVoyage.embed), 'input_type', { task: 'retrieval.query' }, 'query', []],
    ['voyage', known(ownVoyage.embed), 'input_type', { input_type: 'clustering' }, undefined, ['taskType']],
    ['voyage', known(ownVoyage.embed), 'input_type', { input_type: 'query-2' }, 'query-2', []],
  ] as const)(
    'says to %s what its vectors are for in its own words alone',
    (_name, codec, field, fields, word, lost) => {
      const { encoded, losses } = encodedBy(embedCodec, codec, { model: 'm', input: 'x', ...fields });
      expect([encoded.body[field], losses]).toEqual([word, lost]);
    },
  );

  const limits = ['max_chunks_per_doc', 'max_tokens_per_doc', 'overlap_tokens'];
  const rerankFields = new Set([
    'model',
    'query',
    'documents',
    'top_n',
    'return_documents',
    'rank_fields',
    ...limits,
  ]);
  test.each([
    ['cohere', known(ownCohere.rerank), 'top_n', ['max_tokens_per_doc'], []],
    ['voyage', known(ownVoyage.rerank), 'top_k', [], ['truncation']],
  ] as const)(
    'to rerank, in the words of %s, loses exactly what has no word there',
    (_name, codec, most, kept, own) => {
      fc.assert(
        fc.property(rerankRequests, (body) => {
          const { encoded, losses } = encodedBy(rerankCodec, codec, body);
          const lost = limits.filter((name) => name in body && !(kept as readonly string[]).includes(name));
          const unknown = odd(body, rerankFields).filter(
            (name) => !(own as readonly string[]).includes(name),
          );
          expect(losses.toSorted()).toEqual([...lost, ...unknown].toSorted());
          const { query, documents, ...rest } = encoded.body;
          expect(query).toBe(body.query);
          expect((documents as readonly JsonValue[]).every((one) => typeof one === 'string')).toBe(true);
          const count = (body.documents as readonly JsonValue[]).length;
          expect(documents).toHaveLength(count);
          expect(rest).toEqual({
            model: body.model,
            ...(typeof body.top_n === 'number' ? { [most]: Math.min(body.top_n, count) } : {}),
            ...Object.fromEntries(
              [...kept, ...own].filter((name) => name in body).map((name) => [name, body[name]]),
            ),
          });
        }),
        options,
      );
    },
  );
});
