import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { referenceTables } from '../../../plugins/provider-objects/reference-table.ts';
import {
  mayRefer,
  referencesIn,
  referencesInField,
  refersToTurns,
} from '../../../plugins/provider-objects/references.ts';
import { tries } from '../../support/tries.ts';
import type { JsonObject, JsonValue } from '../../../core/model/json.ts';

const ids = (body: JsonValue, format: Parameters<typeof referencesIn>[1]): readonly string[] =>
  referencesIn(body, format)
    .map(({ kind, id }) => `${kind.split('/').at(-1)} ${id}`)
    .toSorted();

describe('files of generateContent', () => {
  const file = (fileUri: string) =>
    ids({ contents: [{ parts: [{ fileData: { fileUri } }] }] }, 'generate-content');

  test.each([
    'https://generativelanguage.googleapis.com/v1beta/files/abc-1',
    'https://generativelanguage.googleapis.com/v1/files/abc-1',
    'files/abc-1',
  ])('%s names one', (uri) => expect(file(uri)).toEqual(['files abc-1']));

  test.each([
    'https://www.youtube.com/watch?v=files',
    'https://example.com/files/report.pdf',
    'https://storage.googleapis.com/bucket/files/a%20b.pdf',
    'gs://bucket/files/x',
    'report.pdf',
  ])('%s leads elsewhere', (uri) => expect(file(uri)).toEqual([]));

  test.each([
    'https://generativelanguage.googleapis.com/v1beta/./files/abc-1',
    'https://generativelanguage.googleapis.com/v1beta/files/abc-1?alt=media',
    'https://GENERATIVELANGUAGE.googleapis.com./v1beta/files/%61bc',
    '//generativelanguage.googleapis.com/v1beta/files/abc-1',
    '/files/abc-1',
    'files/abc-1/',
  ])('%s is refused, as it may be one there', (uri) =>
    expect(() => file(uri)).toThrow('as returned by the provider'),
  );

  test('both spellings of a cached content name it, and names of a cloud are left to it', () => {
    expect(ids({ cachedContent: 'cachedContents/c1' }, 'generate-content')).toEqual(['cachedContents c1']);
    expect(ids({ cached_content: 'c1' }, 'generate-content')).toEqual(['cachedContents c1']);
    expect(ids({ cachedContent: 'projects/p/locations/l/cachedContents/c1' }, 'generate-content')).toEqual(
      [],
    );
  });
});

test('references are found wherever they stand, each once', () => {
  const body = {
    input: [
      { role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] },
      { role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] },
    ],
    tools: [
      { type: 'file_search', vector_store_ids: ['vs_1', 'vs_2'] },
      { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-2'] } },
      { type: 'code_interpreter', container: 'cntr_1' },
    ],
  };
  expect(ids(body, 'chat-completions')).toEqual([
    'containers cntr_1',
    'files file-1',
    'files file-2',
    'vector_stores vs_1',
    'vector_stores vs_2',
  ]);
});

test('what a model, a tool or a source has said names nothing, but for files that code may have made', () => {
  const body = {
    messages: [
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 't', name: 'read', input: { file_id: 'file-x' } },
          { type: 'text', text: 'a', citations: [{ file_id: 'file-x' }] },
          { type: 'bash_code_execution_tool_result', content: { content: [{ file_id: 'file-y' }] } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', content: [{ type: 'image', source: { type: 'file', file_id: 'file-1' } }] },
        ],
      },
    ],
    tools: [{ name: 'read', input_schema: { properties: { file_id: { default: 'file-x' } } } }],
  };
  expect(ids(body, 'messages')).toEqual(['files file-1', 'files file-y']);
  const made = referencesIn(body, 'messages').find(({ id }) => id === 'file-y');
  expect(made?.soft).toBe(true);
});

const everywhere = [
  'metadata',
  'parameters',
  'input_schema',
  'schema',
  'json_schema',
  'arguments',
  'annotations',
  'citations',
  'results',
  'outputs',
] as const;

test.each(everywhere)('nothing in %s is a reference, and what stands beside it is', (member) => {
  const file = (name: string): JsonValue => ({ file_id: name, id: name, type: 'file_id' });
  const body = { inner: [{ [member]: [file('file-x')], more: file('file-1') }], [member]: file('file-y') };
  expect(ids(body, 'messages')).toEqual(['files file-1']);
  expect(ids(body, 'chat-completions')).toEqual(['files file-1']);
  const content = {
    deep: { [member]: { cachedContent: 'cachedContents/x' }, cachedContent: 'cachedContents/1' },
  };
  expect(ids(content, 'generate-content')).toEqual(['cachedContents 1']);
});

test.each(['args', 'response', 'responseSchema', 'responseJsonSchema'])(
  'nothing in %s of generateContent is a reference',
  (member) => {
    expect(ids({ deep: { [member]: { cachedContent: 'cachedContents/x' } } }, 'generate-content')).toEqual(
      [],
    );
  },
);

test.each<[JsonObject, boolean]>([
  [{ previous_response_id: 'resp_1' }, true],
  [{ previous_response_id: null, conversation: null }, false],
  [{ conversation: { id: 'conv_1' } }, true],
  [{ conversation: 'conv_1' }, true],
  [{ prompt_cache_options: { comparison_response_id: 'resp_1' } }, true],
  [{ prompt_cache_options: { comparison_response_id: null } }, false],
  [{ prompt_cache_options: 'x' }, false],
  [{ prompt_cache_options: null, input: 'text' }, false],
  [{ input: [{ type: 'message' }, { type: 'item_reference', id: 'msg_1' }] }, true],
  [{ input: [{ type: 'message', content: 'x' }, 'x', null] }, false],
  [{}, false],
])('%j goes on from turns that a provider has kept: %s', (body, goesOn) => {
  expect(refersToTurns(body)).toBe(goesOn);
});

test('a file must be owned when one of the places that name it demands it', () => {
  const made = { type: 'bash_code_execution_tool_result', content: [{ file_id: 'file-1' }] };
  const sent = { type: 'document', source: { type: 'file', file_id: 'file-1' } };
  for (const content of [
    [made, sent],
    [sent, made],
  ])
    expect(referencesIn({ messages: [{ role: 'user', content }] }, 'messages')).toMatchObject([
      { id: 'file-1', path: expect.stringContaining('source.file_id') },
    ]);
  const twice = { messages: [{ content: [made, sent] }] };
  expect(referencesIn(twice, 'messages')[0]).not.toHaveProperty('soft');
});

describe('a form field', () => {
  const of = (name: string, text: string) =>
    referencesInField(name, text, 'chat-completions').map(({ id, path }) => `${id} at ${path}`);

  test.each([
    ['file_id', 'file-1', ['file-1 at file_id']],
    ['mask[file_id]', 'file-1', ['file-1 at mask[file_id]']],
    ['file_ids[]', 'file-1', ['file-1 at file_ids[]']],
    ['images[0][file_id]', 'file-1', ['file-1 at images[0][file_id]']],
    ['images', '[{"file_id":"file-1"}]', ['file-1 at images[0].file_id']],
    ['images', ' {"file_id":', []],
    ['prompt', 'a file_id', []],
    ['[]', 'x', []],
    ['container', 'cntr_1', ['cntr_1 at container']],
  ])('%s with the text %s', (name, text, found) => expect(of(name, text)).toEqual(found));

  test('is refused where it refers to something in more JSON than is read', () => {
    const long = ' '.repeat(70_000);
    expect(() => of('images', `[{"file_id":"file-1"}${long}]`)).toThrow('JSON');
    expect(of('prompt', `{${long}}`)).toEqual([]);
  });
});

test('a body of many turns is walked once, however deep', () => {
  let deep: JsonValue = { file_id: 'file-1' };
  for (let level = 0; level < 5000; level += 1) deep = [deep];
  expect(ids({ deep }, 'chat-completions')).toEqual(['files file-1']);
  const many = Array.from({ length: 1001 }, (_, index) => ({ file_id: `file-${index}` }));
  expect(() => referencesIn(many, 'chat-completions')).toThrow('at most 1000');
});

describe.each(['chat-completions', 'messages', 'generate-content'] as const)(
  'a look at the letters of a call of %s',
  (format) => {
    const rows = referenceTables[format].rows.filter(({ bodies }) => bodies === undefined);
    const names = rows.map(({ member, type }) => type ?? member);
    const looks = (text: string): readonly boolean[] => [
      mayRefer(text, format),
      mayRefer(Buffer.from(text), format),
    ];

    test.each(names)('finds %s', (name) => {
      expect(looks(JSON.stringify({ [name]: 'x' }))).toEqual([true, true]);
      expect(looks(JSON.stringify({ a: [{ [name]: ['x'] }] }))).toEqual([true, true]);
    });

    test('finds nothing in a call that names nothing', () => {
      const call = {
        model: 'm',
        messages: [
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'A profile.' }] },
        ],
        tools: [{ name: 'read_file', input_schema: { properties: { file_path: { type: 'string' } } } }],
      };
      expect(looks(JSON.stringify(call))).toEqual([false, false]);
    });

    test('overlooks nothing that a walk finds, wherever it stands and however it is written', () => {
      const spelled = names.flatMap((name) => [name, name.toUpperCase(), `a[${name}]`, `a[${name}][0]`]);
      const word = fc.constantFrom(...spelled, 'type', 'role', 'file', 'content', 'id', 'source');
      const value = fc.letrec<{ value: JsonValue }>((tie) => ({
        value: fc.oneof(
          { maxDepth: 4, depthIdentifier: 'json' },
          fc.constantFrom<JsonValue>('file_id', 'file-1', 'files/x-1', 'cachedContents/c1', 7, null),
          fc.string({ maxLength: 200 }),
          fc.array(tie('value'), { maxLength: 3, depthIdentifier: 'json' }),
          fc.dictionary(word, tie('value'), { maxKeys: 3, depthIdentifier: 'json' }),
        ),
      })).value;
      fc.assert(
        fc.property(value, fc.nat(70_000), fc.boolean(), fc.nat(40), (body, before, escapes, letter) => {
          const long = [' '.repeat(before), body] as const;
          let text = JSON.stringify(long);
          if (escapes)
            text = text.replaceAll(/"(\w+)":/g, (all, name: string) => {
              const at = letter % name.length;
              const code = name.charCodeAt(at).toString(16).padStart(4, '0');
              return all.replace(name, `${name.slice(0, at)}\\u${code}${name.slice(at + 1)}`);
            });
          const found = (): boolean => {
            try {
              return referencesIn(JSON.parse(text) as JsonValue, format).length > 0;
            } catch {
              return true;
            }
          };
          fc.pre(found());
          expect(looks(text)).toEqual([true, true]);
        }),
        { numRuns: tries(3000) },
      );
    });
  },
);
