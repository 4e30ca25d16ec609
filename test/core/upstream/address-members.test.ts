import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { outlineOf } from '../../../core/json/outline/index.ts';
import { addressesIn, mayNameAddress } from '../../../core/upstream/addresses/find.ts';
import { addressRowOf, addressRows, longestSign } from '../../../core/upstream/addresses/members.ts';
import { foldName } from '../../../core/sdk/member-names.ts';
import { sdkMembers } from '../../support/sdk-members.ts';

const packages = join(import.meta.dirname, '../../../node_modules');

function declarations(folder: string, keep = /./): readonly string[] {
  return readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.d.ts') && keep.test(file))
    .map((file) => join(packages, folder, file));
}

const params = /Params(?:Base|NonStreaming|Streaming)?$/;

/** The requests of the official SDKs. */
const sdks: Readonly<Record<string, { readonly files: readonly string[]; readonly roots: RegExp }>> = {
  openai: {
    files: declarations('openai/resources'),
    roots: /Params(?:Base|NonStreaming|Streaming)?$|^ResponsesClientEvent$|^RealtimeClientEvent$/,
  },
  anthropic: { files: declarations('@anthropic-ai/sdk/resources'), roots: params },
  google: { files: declarations('@google/genai/dist', /^genai\.d\.ts$/), roots: /Parameters$/ },
  bedrock: {
    files: declarations('@aws-sdk/client-bedrock-runtime/dist-types/models'),
    roots: /(?:Request|Input)$/,
  },
  cohere: { files: declarations('cohere-ai/dist/api'), roots: /Request$/ },
};

/** Names by which a request may say where something is. */
const like =
  /ur[il]s?$|uri_?prefix$|s3|gcs|bucket|blob|big_?query|corp(?:us|ora)|data_?stores?$|^engine$|folder$/i;

/**
 * Names that look so and are none, or belong to objects with a member that is one. `buckets` and `bucket_name` are of Anthropic's data controls,
 * an API for administrators that the gateway does not serve.
 */
const others =
  /^(?:buckets|bucket_name|s3Location|gcsSource|gcsDestination|s3OutputDataConfig|bucketOwner|bigquerySource|bigqueryDestination|gcsDestinations?|vertexDataset|dataStoreSpecs|blob|sdkBlob|ragRetrievalConfig|bucket|(?:time_)?bucket_width)$/;

describe.each(Object.entries(sdks))('addresses in requests of the SDK %s', (name, { files, roots }) => {
  const members = [...new Set(sdkMembers(files, roots).map((one) => one.name))]
    .filter((one) => like.test(one))
    .toSorted();

  test('have a row each, as is written down', async () => {
    const within: Readonly<Record<string, string>> = { engine: 'vertexaisearch' };
    const lines = members.map((member) => {
      const row = addressRowOf(foldName(member), within[member] ?? '');
      return row === undefined ? `${member}: none` : `${member}: ${row.use}, ${row.judged}`;
    });
    expect(
      members.filter(
        (one) => addressRowOf(foldName(one), within[one] ?? '') === undefined && !others.test(one),
      ),
    ).toEqual([]);
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`addresses-${name}.txt`);
  });

  test('are seen by a look at the letters of the body', () => {
    const unseen = members.filter((member) => {
      const body = { vertexAiSearch: { [member]: 'gs://bucket/a' } };
      return addressesIn(body).length > 0 && !mayNameAddress(JSON.stringify(body));
    });
    expect(unseen).toEqual([]);
  });
});

/** A member for each row, and the member around it. */
const samples: readonly (readonly [member: string, within?: string])[] = [
  ['storageUri'],
  ['output_folder'],
  ['outputUriPrefix'],
  ['outputUri'],
  ['url', 'output_folder'],
  ['uris', 'gcsDestination'],
  ['s3Uri', 's3OutputDataConfig'],
  ['gcsUri'],
  ['gcs_uri'],
  ['s3Uri'],
  ['bigqueryUri'],
  ['inputUri'],
  ['input_blob'],
  ['uri', 's3Location'],
  ['uris', 'gcsSource'],
  ['ragCorpus'],
  ['ragCorpora'],
  ['datastore'],
  ['dataStore'],
  ['engine', 'vertexAiSearch'],
  ['cachedContent'],
  ['image_url'],
  ['file_url'],
  ['url', 'image_url'],
  ['url', 'source'],
  ['fileUri'],
  ['uri', 'video'],
  ['id', 'source'],
  ['images'],
  ['input_reference'],
];

/** As the scanner of long requests tells it. */
function seenInOutline(text: string): boolean | undefined {
  return outlineOf(Buffer.from(text), { depth: 100, values: 10_000, members: 1_000 })?.mayNameAddress;
}

describe('the scanner of long requests', () => {
  const names = fc.oneof(
    fc.constantFrom(
      ...samples.flatMap(([member, within = 'x']) => [member, within]),
      'content',
      'messages',
      'function',
      'url',
      'user_location',
      'tool_calls',
      'x',
    ),
    fc
      .tuple(
        fc.constantFrom(
          'storage',
          'output',
          'input',
          'query',
          's3',
          'gcs',
          'corp',
          'uri',
          'data',
          'ai',
          'cached',
          'my',
        ),
        fc.constantFrom('', '_'),
        fc.constantFrom('', 'gcs', 'gcs_', 'data', 'data_'),
        fc.constantFrom(
          'uri',
          'uris',
          'folder',
          'blob',
          'source',
          'config',
          'location',
          'prefix',
          'ora',
          'us',
          'content',
          'stores',
          'search',
        ),
      )
      .map((parts) => parts.join('')),
    fc.string({ maxLength: 12 }),
  );
  const cases = fc.constantFrom(
    (name: string) => name,
    (name: string) => name.toUpperCase(),
    (name: string) => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  );
  const space = fc.constantFrom('', ' ', '\n', '\t'.repeat(20));
  const values = fc.constantFrom(
    '"gs://a"',
    '["gs://a"]',
    '"projects/p/a"',
    '"/etc/passwd"',
    '1',
    'null',
    '"https://a/b"',
  );
  const members = fc.letrec<{ readonly object: string; readonly member: string }>((tie) => ({
    object: fc.array(tie('member'), { minLength: 1, maxLength: 3 }).map((some) => `{${some.join(',')}}`),
    member: fc
      .tuple(
        names,
        cases,
        space,
        space,
        fc.oneof(
          { depthSize: 'small' },
          values,
          tie('object'),
          tie('object').map((one) => `[${String(one)}]`),
        ),
      )
      .map(
        ([name, cased, before, behind, value]) =>
          `${JSON.stringify(cased(name))}${before}:${behind}${String(value)}`,
      ),
  }));

  test('sees every address that is judged', () => {
    let judged = 0;
    fc.assert(
      fc.property(members.object, (object) => {
        const text = `{"messages":[${object}]}`;
        if (addressesIn(JSON.parse(text) as never).length === 0) return;
        judged += 1;
        expect([text, seenInOutline(text)]).toEqual([text, true]);
      }),
      { numRuns: 5_000 },
    );
    expect(judged).toBeGreaterThan(500);
  });

  test('sees a name whose letters are written as codes', () => {
    expect(seenInOutline(String.raw`{"a":{"\u0075rl":"file:///a"}}`)).toBe(true);
  });

  test.each([
    [
      'chat',
      '{"messages":[{"role":"user","content":"url"},{"role":"assistant","tool_calls":[{"type":"function","id":"call_uri"}]}]}',
    ],
    [
      'the schema of a tool',
      '{"tools":[{"input_schema":{"properties":{"url":{"type":"string"},"file":{"type":"string"}}}}]}',
    ],
  ])('sees none in %s', (_, text) => {
    expect(seenInOutline(text)).toBe(false);
  });
});

test('every row has a sample, and each is seen by its letters, however it is spaced', () => {
  const rows = samples.map(([member, within = '']) => addressRowOf(foldName(member), foldName(within)));
  expect(new Set(rows)).toEqual(new Set(addressRows));
  for (const [member, within = 'x'] of samples) {
    // Of the gateway's own words, which no client writes.
    if (member === 'id') continue;
    for (const space of ['', ' ', '\n'.repeat(100)])
      for (const value of ['"gs://a"', '["gs://a"]', '"projects/p/a"']) {
        const text = `{"${within}"${space}:${space}{"${member}"${space}:${space}${value}}}`;
        if (addressesIn(JSON.parse(text) as never).length === 0) continue;
        expect([text, mayNameAddress(text)]).toEqual([text, true]);
        // Also at the border between two stretches.
        for (const before of [64 * 1024 - 10, 64 * 1024 - longestSign + 5])
          expect(mayNameAddress(Buffer.from(' '.repeat(before) + text))).toBe(true);
      }
  }
});

test('a request with pictures by https is not walked through', () => {
  expect(mayNameAddress('{"image_url": {"url": "https://example.com/a.png"}}')).toBe(false);
  expect(mayNameAddress('{"text": "the \\"url\\": \\"gs://a\\" of s3"}')).toBe(false);
});

test('a thousand addresses are too many', () => {
  const body = { urls: Array.from({ length: 1001 }, (_, index) => `s3://a/${index}`) };
  expect(() => addressesIn(body)).toThrow('at most 1000 storage URLs');
});
