import { describe, expect, test } from 'vitest';
import { referencesIn } from '../../../plugins/provider-objects/references.ts';
import type { JsonValue } from '../../../core/model/json.ts';

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
    expect(() => file(uri)).toThrow('as the provider gave it'),
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

test('what a model, a tool or a source has said names nothing', () => {
  const body = {
    messages: [
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 't', name: 'read', input: { file_id: 'file-x' } },
          { type: 'text', text: 'a', citations: [{ file_id: 'file-x' }] },
          { type: 'bash_code_execution_tool_result', content: { content: [{ file_id: 'file-x' }] } },
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
  expect(ids(body, 'messages')).toEqual(['files file-1']);
});

test('a body of many turns is walked once, however deep', () => {
  let deep: JsonValue = { file_id: 'file-1' };
  for (let level = 0; level < 5000; level += 1) deep = [deep];
  expect(ids({ deep }, 'chat-completions')).toEqual(['files file-1']);
  const many = Array.from({ length: 1001 }, (_, index) => ({ file_id: `file-${index}` }));
  expect(() => referencesIn(many, 'chat-completions')).toThrow('at most 1000');
});
