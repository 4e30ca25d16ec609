import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../core/model/json.ts';
import type { UpstreamRequest } from '../../../core/sdk/channel.ts';
import { addressesIn, addressesInFields } from '../../../core/upstream/addresses/find.ts';
import { addressesOf, refusedAddress, refusedRequest } from '../../../core/upstream/addresses/index.ts';
import { testCall } from '../../support/call.ts';

/** `path: value (use)` of each address. */
const shown = (body: JsonValue): string[] =>
  addressesIn(body)
    .map(({ path, value, use }) => `${path}: ${value} (${use})`)
    .toSorted();
/** The use of a text below a member; undefined where it is no address. */
const useOf = (member: string, value: string, within?: string): string | undefined => {
  const inner: JsonObject = { [member]: value };
  return addressesIn(within === undefined ? inner : { [within]: inner })[0]?.use;
};

const cloud = 'gs://bucket/a';
const web = 'https://a.test/b';

describe('where a provider writes', () => {
  test.each([
    'storageUri',
    'storage_uri',
    'outputGcsUri',
    'output_gcs_uri',
    'outputUri',
    'output_uri',
    'outputUriPrefix',
    'output_uri_prefix',
    'outputFolder',
    'output_folder',
  ])('%s, whatever stands there', (member) => {
    for (const value of [cloud, web, 'a-name']) expect(useOf(member, value)).toBe('write');
  });

  test.each([
    ['url', 'output_folder'],
    ['uri', 'outputFolder'],
    ['uris', 'gcsDestination'],
    ['urls', 'outputConfig'],
    ['uri', 'output_config'],
    ['url', 'outputDataConfig'],
    ['url', 'output_data_config'],
    ['s3Uri', 's3OutputDataConfig'],
    ['s3_uri', 's3_output_data_config'],
    ['inputUri', 'bigqueryDestination'],
    ['input_uri', 'destination'],
  ])('%s within %s, whatever stands there', (member, within) => {
    for (const value of [cloud, web, 'a-name']) expect(useOf(member, value, within)).toBe('write');
  });
});

describe('where a provider reads', () => {
  test.each([
    'gcsUri',
    'gcs_uri',
    'gcsUris',
    'gcs_uris',
    's3Uri',
    's3_uri',
    's3Uris',
    'bigqueryUri',
    'big_query_uri',
    'bigQueryUri',
    'inputUri',
    'input_uri',
    'inputBlob',
    'input_blob',
    'ragCorpus',
    'rag_corpus',
    'ragCorpora',
    'rag_corpora',
    'datastore',
    'dataStore',
    'data_store',
    'dataStores',
  ])('%s, whatever stands there', (member) => {
    for (const value of [cloud, web, 'a-name']) expect(useOf(member, value)).toBe('read');
  });

  test.each([
    ['uri', 's3Location'],
    ['uri', 's3_location'],
    ['url', 's3InputDataConfig'],
    ['url', 's3_input_data_config'],
    ['uris', 'gcsSource'],
    ['uris', 'gcs_source'],
    ['uri', 'bigquerySource'],
    ['uri', 'big_query_source'],
    ['url', 'inputBlob'],
    ['url', 'input_blob'],
    ['engine', 'vertexAiSearch'],
    ['engine', 'vertex_ai_search'],
    ['engine', 'aisearch'],
  ])('%s within %s, whatever stands there', (member, within) => {
    for (const value of [cloud, web, 'a-name']) expect(useOf(member, value, within)).toBe('read');
  });

  test.each<[member: string, within?: string]>([
    ['imageUrl'],
    ['image_url'],
    ['videoUrl'],
    ['audio_url'],
    ['fileUrl'],
    ['file_uri'],
    ['documentUrl'],
    ['document_uris'],
    ['url', 'imageUrl'],
    ['url', 'image_url'],
    ['url', 'video_url'],
    ['url', 'audioUrl'],
    ['url', 'file_url'],
    ['url', 'document_url'],
    ['url', 'source'],
  ])('%s (within %s): what is neither on the web nor data, and paths', (member, within) => {
    for (const value of [cloud, 's3://a/b', 'file:///etc/passwd', '/etc/passwd', '../a.png', 'a.png'])
      expect([value, useOf(member, value, within)]).toEqual([value, 'read']);
    for (const value of [
      web,
      'http://a.test',
      'HTTPS://a.test',
      'data:image/png;base64,AA',
      'file-abc_123',
      '/9j/4AAQ',
      'iVBOR+/w0KGgo=',
    ])
      expect([value, useOf(member, value, within)]).toEqual([value, undefined]);
  });

  test.each<[member: string, within?: string]>([
    ['id', 'source'],
    ['uri'],
    ['url'],
    ['urls'],
    ['uris'],
    ['downloadUri'],
    ['fancyurl'],
    ['image'],
    ['images'],
    ['mask'],
    ['video'],
    ['audio'],
    ['file'],
    ['input_reference'],
  ])('%s (within %s): what has a scheme that is neither of the web nor data', (member, within) => {
    for (const value of [cloud, 'S3://a/b', 'file:/etc/passwd', 'azure+blob.x-y://a', ' gs://a', 'g\ns://a'])
      expect([value, useOf(member, value, within)]).toEqual([value, 'read']);
    for (const value of [web, 'data:,a', '/etc/passwd', 'a b', '', '1s://a', 'name', '://a', 'x/gs://a'])
      expect([value, useOf(member, value, within)]).toEqual([value, undefined]);
  });

  test('cachedContent: what a project keeps', () => {
    for (const member of ['cachedContent', 'cached_content']) {
      for (const value of [
        'projects/p/locations/l',
        'Projects/p',
        '/projects/p',
        '//projects/p',
        ' projects/p',
      ])
        expect([value, useOf(member, value)]).toEqual([value, 'read']);
      for (const value of ['cachedContents/a', 'projects', 'xprojects/p', cloud])
        expect([value, useOf(member, value)]).toEqual([value, undefined]);
    }
  });

  test('nowhere in members that only look so', () => {
    for (const member of [
      'storageUris',
      'myStorageUri',
      'urlOf',
      'datastoreSpec',
      'mydatastore',
      'engines',
      'imagesOf',
      'ragCorporaX',
    ])
      expect([member, useOf(member, 'a-name')]).toEqual([member, undefined]);
    for (const [member, within] of [
      ['engine', 'search'],
      ['engine', 'aisearchof'],
      ['url', 's3locationof'],
      ['url', 'mygcssource'],
      ['url', 'destinations'],
      ['url', 'myoutputfolder'],
      ['id', 'mysource'],
      ['id', 'sources'],
    ] as const)
      expect([member, within, useOf(member, 'a-name', within)]).toEqual([member, within, undefined]);
    expect(useOf('url', '/etc/passwd', 'sources')).toBeUndefined();
    expect(useOf('url', '/etc/passwd', 'myimageurl')).toBeUndefined();
    expect(useOf('urlimage', cloud)).toBeUndefined();
  });
});

describe('addresses in a body', () => {
  test('are found at any depth, with the path that the client knows', () => {
    expect(
      shown({
        url: cloud,
        list: [{ file_url: '/etc/passwd' }, [{ gcsUri: 'a' }], 'gs://in-a-list', null, 7],
        gcsSource: { uris: ['gs://a', 7, 'gs://b'] },
        deep: { a: { b: { outputFolder: 'x' } } },
        urls: [{ url: 's3://c' }],
        nothing: null,
        number: 7,
      }),
    ).toEqual([
      'deep.a.b.outputFolder: x (write)',
      'gcsSource.uris[0]: gs://a (read)',
      'gcsSource.uris[2]: gs://b (read)',
      'list[0].file_url: /etc/passwd (read)',
      'list[1][0].gcsUri: a (read)',
      'url: gs://bucket/a (read)',
      'urls[0].url: s3://c (read)',
    ]);
    expect(shown('gs://a')).toEqual([]);
    expect(shown(null)).toEqual([]);
    expect(shown(['gs://a', { url: cloud }])).toEqual(['[1].url: gs://bucket/a (read)']);
  });

  test('are not looked for in what no provider reads as an address', () => {
    for (const member of [
      'metadata',
      'labels',
      'input_schema',
      'schema',
      'json_schema',
      'arguments',
      'annotations',
      'citations',
      'results',
      'outputs',
      'args',
      'responseSchema',
      'response_schema',
      'action',
      'json',
      'response',
      'parametersJsonSchema',
    ])
      expect([member, shown({ [member]: { url: cloud } })]).toEqual([member, []]);
  });

  test('in the input of a call of a tool are the tool’s', () => {
    const call = { type: 'tool_use', input: { url: cloud }, url: cloud };
    expect(shown({ content: [call] })).toEqual(['content[0].url: gs://bucket/a (read)']);
    expect(shown({ content: [{ ...call, type: 'server_tool_use' }] })).toHaveLength(1);
    expect(shown({ toolUse: { input: { url: cloud } } })).toEqual([]);
    // Elsewhere such a type hides nothing.
    expect(shown({ content: [{ ...call, type: 'tool_use_of' }] })).toHaveLength(2);
    expect(shown({ content: [{ ...call, type: 7 }] })).toHaveLength(2);
    expect(shown({ content: call })).toHaveLength(2);
    expect(shown({ toolUse: { inputs: { url: cloud } } })).toHaveLength(1);
  });

  test('a thousand are as many as there may be', () => {
    const body = (count: number) => ({ urls: Array.from({ length: count }, () => cloud) });
    expect(addressesIn(body(1000))).toHaveLength(1000);
    expect(() => addressesIn(body(1001))).toThrow('at most 1000 storage URLs');
  });

  test('of a form stand in its fields, in the last name between brackets, and in JSON there', () => {
    const found = (fields: JsonObject): string[] => addressesInFields(fields).map(({ path }) => path);
    expect(
      found({
        url: cloud,
        'image[url]': cloud,
        'urls[0]': cloud,
        'a[12][image_url]': '/etc/passwd',
        'image[3]': cloud,
        'url[other]': cloud,
        '[]': cloud,
        input: ` {"a": {"url": "${cloud}"}}`,
        list: `[{"gcsUri": "a"}]`,
        broken: `{"url": "${cloud}"`,
        prompt: `{"text": "hello"}`,
        image: [cloud],
      }).toSorted(),
    ).toEqual(
      [
        'url',
        'image[url]',
        'urls[0]',
        'a[12][image_url]',
        'image[3]',
        'input.a.url',
        'list[0].gcsUri',
        'image[0]',
      ].toSorted(),
    );
    expect(found({ mask: '[gs://a' })).toEqual([]);
    expect(found({ mask: undefined as never, url: cloud })).toEqual(['url']);
  });

  test('are found below very long names too', () => {
    const long = 'x'.repeat(80);
    expect(shown({ [`${long}url`]: cloud })).toEqual([`${long}url: gs://bucket/a (read)`]);
    expect(shown({ [`${long}urls`]: 'a-name' })).toEqual([]);
    expect(shown({ [`${long}destination`]: { url: cloud } })).toEqual([
      `${long}destination.url: gs://bucket/a (read)`,
    ]);
  });
});

describe('what a channel may read and write', () => {
  const named = (value: string, use: 'read' | 'write' = 'read') => [{ path: 'a.url', value, use }];
  const isAllowed = (value: string, mayRead: readonly string[]): boolean =>
    refusedAddress(named(value), { mayRead } as never) === undefined;

  test('is nothing, unless the operator says so, or the credential is the client’s', () => {
    expect(refusedAddress(named(cloud), {} as never)).toMatchObject({
      code: 'forbidden',
      status: 403,
      param: 'a.url',
      message: expect.stringMatching(
        /"a\.url" names gs:\/\/bucket\/a, .* read .* channel option mayRead/,
      ) as string,
    });
    expect(refusedAddress(named(cloud, 'write'), {} as never)?.message).toMatch(
      / write .* channel option mayWrite/,
    );
    expect(refusedAddress([], {} as never)).toBeUndefined();
    expect(refusedAddress(named(cloud), { forwards: 'them' } as never)).toBeUndefined();
  });

  test('is told apart, and all addresses of a request must be allowed', () => {
    const rules = { mayRead: ['gs://in/'], mayWrite: ['gs://out/'] } as never;
    expect(refusedAddress(named('gs://in/a'), rules)).toBeUndefined();
    expect(refusedAddress(named('gs://out/a', 'write'), rules)).toBeUndefined();
    expect(refusedAddress(named('gs://in/a', 'write'), rules)).toBeDefined();
    expect(refusedAddress(named('gs://out/a'), rules)).toBeDefined();
    expect(refusedAddress([...named('gs://in/a'), ...named('gs://x/a')], rules)?.message).toContain(
      'gs://x/a',
    );
  });

  test.each([
    ['gs://ours/one', 'gs://ours/one', true],
    ['GS://ours/one', 'gs://ours/one', true],
    ['gs://ours/one', 'GS://ours/one', true],
    ['gs://OURS/one', 'gs://ours/one', false],
    ['gs://ours/one/', 'gs://ours/one', false],
    ['gs://ours/on', 'gs://ours/one', false],
    ['gs://ours/a/b', 'gs://ours/', true],
    ['Gs://ours/a', 'gS://ours/', true],
    ['gs://ours', 'gs://ours/', false],
    ['x/gs://ours/', 'gs://ours/', false],
    ['projects/p/a', 'projects/p/', true],
    ['Projects/p/a', 'projects/p/', false],
    ['projects/p', 'projects/p', true],
    ['gs://ours/../a', 'gs://ours/', false],
    ['gs://ours/./a', 'gs://ours/', false],
    ['gs://ours/a/..', 'gs://ours/', false],
    ['gs://ours/a/..?x', 'gs://ours/', false],
    ['gs://ours/a/..#x', 'gs://ours/', false],
    ['gs://ours/%2e%2E/a', 'gs://ours/', false],
    ['gs://ours/.%2e/a', 'gs://ours/', false],
    ['gs://ours/a%2fb', 'gs://ours/', false],
    ['gs://ours/a%5Cb', 'gs://ours/', false],
    ['gs://ours/a\\b', 'gs://ours/', false],
    ['gs://ours/a\nb', 'gs://ours/', false],
    ['gs://ours/a\0', 'gs://ours/', false],
    ['gs://ours/..a/b..c/...', 'gs://ours/', true],
    ['gs://ours/a b', 'gs://ours/', true],
  ])('%j by the entry %j: %s', (value, entry, expected) => {
    expect(isAllowed(value, ['s3://other/', entry])).toBe(expected);
  });

  test('long paths and addresses are cut in the refusal', () => {
    const error = refusedAddress(
      [{ path: 'p'.repeat(300), value: 'v'.repeat(300), use: 'read' }],
      {} as never,
    );
    expect(error?.param).toBe('p'.repeat(200));
    expect(error?.message).toContain(`"${'p'.repeat(200)}" names ${'v'.repeat(200)}, which`);
  });
});

describe('the addresses of a call', () => {
  const callWith = (body: JsonObject, operation: 'chat' | 'state' | 'realtime' | 'list-models' = 'chat') => {
    const { call, exchange } = testCall({ operation });
    exchange.understand(Buffer.from(JSON.stringify(body)), { model: 'm', stream: false, ...body });
    return call;
  };
  const values = (call: Parameters<typeof addressesOf>[0]): string[] =>
    addressesOf(call).map(({ value }) => value);

  test('are those of its body, and none where there is nothing to send', () => {
    expect(values(callWith({ image: cloud }))).toEqual([cloud]);
    expect(values(callWith({ image: web }))).toEqual([]);
    expect(values(testCall().call)).toEqual([]);
  });

  test.each(['state', 'realtime', 'list-models'] as const)('of %s are judged elsewhere', (operation) => {
    expect(values(callWith({ image: cloud }, operation))).toEqual([]);
  });

  test('are also those that a plugin has put in, in the body or in the history', () => {
    const call = callWith({ image: cloud });
    expect(values(call)).toEqual([cloud]);
    const edited = call.with({ body: { model: 'm', image: 's3://edited/a' } });
    expect(values(edited)).toEqual(['s3://edited/a']);
    const history = [
      { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 's3://earlier/a' } }] },
    ];
    const remembering = edited.with({ messages: history as never });
    expect(values(remembering)).toEqual(['s3://edited/a', 's3://earlier/a']);
    expect(values(edited.with({ messages: [] }))).toEqual(['s3://edited/a']);
    expect(values(call)).toEqual([cloud]);
  });

  const request = (more: Partial<UpstreamRequest>): UpstreamRequest => ({
    operation: 'state',
    format: 'plain',
    model: 'm',
    stream: false,
    path: '/',
    query: {},
    headers: {},
    body: '',
    ...more,
  });

  test('that is about an object of the provider stand in the body that goes out', () => {
    const call = callWith({}, 'state');
    const text = JSON.stringify({ input_blob: 'https://ours/a' });
    for (const body of [text, Buffer.from(text)])
      expect(refusedRequest(call, request({ body }), {} as never)).toMatchObject({
        code: 'forbidden',
        param: 'input_blob',
      });
    expect(
      refusedRequest(call, request({ body: text }), { mayRead: ['https://ours/'] } as never),
    ).toBeUndefined();
    for (const body of ['', '{"input_blob": ', '{"a": 1}', [{ name: 'input_blob', value: 'a' }]])
      expect(refusedRequest(call, request({ body }), {} as never)).toBeUndefined();
  });

  test('that asks a model are those of the call', () => {
    const call = callWith({ image: cloud });
    expect(refusedRequest(call, request({ operation: 'chat' }), {} as never)).toMatchObject({
      param: 'image',
    });
    expect(
      refusedRequest(callWith({}), request({ operation: 'chat', body: '{"image":"gs://a"}' }), {} as never),
    ).toBeUndefined();
  });
});
