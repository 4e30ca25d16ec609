import { describe, expect, test } from 'vitest';
import type { JsonObject } from 'sluice';
import {
  checkInline,
  fileNameIn,
  inlineOf,
  modelsIn,
  withModel,
} from '../../../plugins/provider-objects/batch-body.ts';
import { modelOfBatch } from '../../../plugins/provider-objects/batch-model.ts';
import {
  answerIn,
  batchSorts,
  codecOfLine,
  endpointOf,
  endpointOfLine,
  memberOfLine,
} from '../../../plugins/provider-objects/batch-sorts.ts';
import { collectionOf, collections, idIn, isId } from '../../../plugins/provider-objects/collections.ts';
import type { ProviderAccount } from '../../../plugins/provider-objects/account.ts';
import { asShown, originOf } from '../../../plugins/provider-objects/shown.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';

const chat = batchSorts['chat-completions/batches']!;
const messages = batchSorts['messages/messages/batches']!;
const content = batchSorts['generate-content/batches']!;

describe('the end of a batch', () => {
  test.each([
    ['completed', true],
    ['failed', true],
    ['expired', true],
    ['cancelled', true],
    ['cancelling', false],
    ['finalizing', false],
    ['in_progress', false],
    ['validating', false],
  ])('of chat completions that is %s: %s', (status, isOver) => {
    expect(chat.isOver({ status })).toBe(isOver);
  });

  test('of messages is told by its processing status alone', () => {
    expect(messages.isOver({ processing_status: 'ended' })).toBe(true);
    expect(messages.isOver({ processing_status: 'canceling', ended_at: 'now' })).toBe(false);
  });

  test.each([
    [{ done: true }, true],
    [{ done: false, metadata: { state: 'BATCH_STATE_SUCCEEDED' } }, true],
    [{ metadata: { state: 'BATCH_STATE_FAILED' } }, true],
    [{ metadata: { state: 'BATCH_STATE_CANCELLED' } }, true],
    [{ metadata: { state: 'BATCH_STATE_EXPIRED' } }, true],
    [{ metadata: { state: 'BATCH_STATE_RUNNING' } }, false],
    [{ metadata: {} }, false],
    [{ metadata: 'BATCH_STATE_SUCCEEDED' }, false],
    [{}, false],
  ])('of generateContent that is told as %j: %s', (seen, isOver) => {
    expect(content.isOver(seen)).toBe(isOver);
  });
});

describe('the results of a batch', () => {
  test('of chat completions are a file, and what it has left behind are two', () => {
    expect(chat.results({ output_file_id: 'file/1' }, 'b')).toEqual({
      method: 'GET',
      path: '/files/file%2F1/content',
    });
    for (const seen of [{}, { output_file_id: null }, { output_file_id: '' }] as const)
      expect(chat.results(seen, 'b')).toBeUndefined();
    expect(chat.files({ output_file_id: 'a', error_file_id: 'b' })).toEqual(['a', 'b']);
    expect(chat.files({ output_file_id: null, error_file_id: 'b' })).toEqual(['b']);
    expect(chat.files({})).toEqual([]);
    expect(chat.inline({})).toEqual([]);
  });

  test('of messages are below the batch once there is an address of them', () => {
    expect(messages.results({ results_url: 'https://x' }, 'b1')).toEqual({
      method: 'GET',
      path: '/messages/batches/b1/results',
    });
    expect(messages.results({ results_url: null }, 'b1')).toBeUndefined();
    expect([messages.files({}), messages.inline({})]).toEqual([[], []]);
  });

  test.each(['response', 'output'])(
    'of generateContent are a file or stand in the description, in its %s',
    (where) => {
      const seen = (output: JsonObject): JsonObject =>
        where === 'response' ? { response: output } : { metadata: { output } };
      expect(content.results(seen({ responsesFile: 'files/batch-1' }), 'b')).toEqual({
        method: 'GET',
        path: '/files/batch-1:download',
        query: { alt: 'media' },
      });
      expect(content.files(seen({ responsesFile: 'files/batch-1' }))).toEqual(['batch-1']);
      expect(content.results(seen({}), 'b')).toBeUndefined();
      expect(content.files(seen({}))).toEqual([]);
      const list = [{ response: {} }];
      expect(content.inline(seen({ inlinedResponses: { inlinedResponses: list } }))).toBe(list);
      expect(content.inline(seen({ inlinedEmbedContentResponses: { inlinedResponses: list } }))).toBe(list);
      for (const odd of [{}, { inlinedResponses: {} }, { inlinedResponses: { inlinedResponses: 'x' } }])
        expect(content.inline(seen(odd))).toEqual([]);
    },
  );

  test('of generateContent are none where a description has neither', () => {
    for (const odd of [{}, { metadata: 'x' }, { metadata: { output: 'x' } }, { response: 'x' }])
      expect([content.results(odd, 'b'), content.inline(odd)]).toEqual([undefined, []]);
  });
});

describe('an answer of a batch', () => {
  const body = { model: 'm', usage: {} };

  test('of chat completions has the reply and its model, and none where the request failed', () => {
    const answer = (response: unknown) => answerIn(JSON.stringify({ response }), chat);
    expect(answer({ status_code: 200, body })).toEqual({ reply: body, model: 'm' });
    expect(answer({ status_code: 399, body: { model: '' } })).toEqual({
      reply: { model: '' },
      model: undefined,
    });
    expect(answer({ body })).toEqual({ reply: body, model: 'm' });
    for (const failed of [null, {}, { status_code: 400, body }, { status_code: 500, body }, { body: 'x' }])
      expect(answer(failed)).toBeUndefined();
  });

  test('of messages and generateContent is the message and the response', () => {
    const message = { model: 'claude' };
    expect(messages.answer({ result: { type: 'succeeded', message } })).toEqual({
      reply: message,
      model: 'claude',
    });
    expect(messages.answer({ result: { type: 'errored' } })).toBeUndefined();
    expect(messages.answer({})).toBeUndefined();
    const response = { modelVersion: 'gemini' };
    expect(content.answer({ response })).toEqual({ reply: response, model: 'gemini' });
    expect(content.answer({ error: {} })).toBeUndefined();
  });

  test('in a line that nobody can read is none', () => {
    for (const text of ['', '{', '[]', '"x"']) expect(answerIn(text, chat)).toBeUndefined();
  });

  test.each([
    ['chat-completions', { endpoint: '/v1/chat/completions' }, ['chat-completions', 'chat']],
    ['chat-completions', { endpoint: '/chat/completions' }, ['chat-completions', 'chat']],
    ['chat-completions', { endpoint: '/v4/chat/completions' }, ['chat-completions', 'chat']],
    ['chat-completions', { endpoint: '/v1/responses' }, ['responses', 'chat']],
    ['chat-completions', { endpoint: '/v1/completions' }, ['text-completions', 'chat']],
    ['chat-completions', { endpoint: '/v1/embeddings' }, ['embeddings', 'embed']],
    ['chat-completions', { endpoint: '/v1/rerank' }, ['rerank', 'rerank']],
    ['chat-completions', { endpoint: '/v1/moderations' }, ['moderations', 'moderate']],
    ['chat-completions', { endpoint: '/v1/images/generations' }, ['images', 'generate-image']],
    ['chat-completions', { endpoint: '/v1/images/edits' }, ['images', 'edit-image']],
    ['chat-completions', { endpoint: '/v1/toString' }, ['chat-completions', 'chat']],
    ['chat-completions', { endpoint: null }, ['chat-completions', 'chat']],
    ['messages/messages', {}, ['messages', 'chat']],
    ['generate-content', { embeds: true }, ['generate-content', 'embed']],
    ['generate-content', { embeds: 'true' }, ['generate-content', 'chat']],
  ])('of %s of %j is read by %j', (format, known, codec) => {
    expect(batchSorts[`${format}/batches`]?.codec(known)).toEqual(codec);
  });
});

describe('a line of a file of requests', () => {
  test('is for the endpoint that it names, or that its members tell', () => {
    expect(endpointOfLine({ url: '/v1/x' }, { messages: [] })).toBe('/v1/x');
    expect(endpointOfLine({}, { messages: [], documents: [], input: '' })).toBe('/v1/chat/completions');
    expect(endpointOfLine({}, { documents: [], input: '' })).toBe('/v1/rerank');
    expect(endpointOfLine({ url: 1 }, { input: '' })).toBe('/v1/embeddings');
    expect(endpointOfLine({}, {})).toBeUndefined();
    expect(endpointOf('/v2/x')).toBe('/v1/x');
    expect(endpointOf('/x/v2/y')).toBe('/v1/x/v2/y');
    expect(endpointOf('/v12/x')).toBe('/v1/x');
  });

  test('is read by the codec of its request', () => {
    expect(codecOfLine('chat-completions', { url: '/v1/responses' }, {})).toEqual(['responses', 'chat']);
    expect(codecOfLine('chat-completions', { url: '/v1/other' }, {})).toBeUndefined();
    expect(codecOfLine('chat-completions', {}, {})).toBeUndefined();
    expect(codecOfLine('messages', {}, {})).toEqual(['messages', 'chat']);
    expect(codecOfLine('generate-content', {}, { contents: [] })).toEqual(['generate-content', 'chat']);
    expect(codecOfLine('generate-content', {}, { content: {} })).toEqual(['generate-content', 'embed']);
    expect(codecOfLine('generate-content', {}, { content: {}, contents: [] })).toEqual([
      'generate-content',
      'chat',
    ]);
    expect([memberOfLine('generate-content'), memberOfLine('chat-completions')]).toEqual(['request', 'body']);
  });
});

describe('the description of a batch', () => {
  const publicUrl = 'https://gateway.example';
  const of = (format: Parameters<typeof collectionOf>[0], name: string) => collectionOf(format, name);

  test('of messages tells results below the gateway, by its public URL or by the request', async () => {
    const seen = { id: 'msgbatch_1', processing_status: 'ended', results_url: 'https://provider/x' };
    const batches = of('messages', 'messages/batches');
    const { call } = await makeCall({ headers: { host: 'here:1', 'x-forwarded-proto': 'https' } });
    expect(asShown(call, batches, seen, { publicUrl })['results_url']).toBe(
      'https://gateway.example/v1/messages/batches/msgbatch_1/results',
    );
    expect(asShown(call, batches, seen, { publicUrl: undefined })['results_url']).toBe(
      'https://here:1/v1/messages/batches/msgbatch_1/results',
    );
    const none = { id: 'msgbatch_1', results_url: null };
    expect(asShown(call, batches, none, { publicUrl })).toBe(none);
    const file = { id: 'file_1', results_url: 'https://provider/x' };
    expect(asShown(call, of('messages', 'files'), file, { publicUrl })).toBe(file);
  });

  test.each([
    [{ host: 'a.example' }, 'http://a.example'],
    [{ host: '[::1]:8080', 'x-forwarded-proto': 'http' }, 'http://[::1]:8080'],
    [{ host: 'a_b-c.example:1', 'x-forwarded-proto': 'https' }, 'https://a_b-c.example:1'],
    [{ host: 'a/b' }, ''],
    [{ host: 'a"b' }, ''],
    [{ host: 'x'.repeat(256) }, ''],
    [{}, ''],
  ])('has an address of the gateway as %j says', async (headers, origin) => {
    const { call } = await makeCall({ headers: headers as Record<string, string> });
    expect(originOf(call)).toBe(origin);
  });

  test('has no results before they are charged', async () => {
    const { call } = await makeCall();
    const shown = (format: Parameters<typeof collectionOf>[0], name: string, seen: JsonObject) =>
      asShown(call, of(format, name), seen, { publicUrl }, true);
    for (const file of ['output_file_id', 'error_file_id'])
      expect(
        shown('chat-completions', 'batches', { id: 'b', status: 'completed', [file]: 'f', completed_at: 1 }),
      ).toEqual({
        id: 'b',
        status: 'finalizing',
        output_file_id: null,
        error_file_id: null,
        completed_at: null,
      });
    const running = { id: 'b', status: 'in_progress', output_file_id: null };
    expect(shown('chat-completions', 'batches', running)).toBe(running);
    expect(
      shown('messages', 'messages/batches', {
        id: 'b',
        processing_status: 'ended',
        ended_at: 'now',
        results_url: 'https://x',
      }),
    ).toEqual({ id: 'b', processing_status: 'in_progress', ended_at: null, results_url: null });
    const going = { id: 'b', processing_status: 'canceling' };
    expect(shown('messages', 'messages/batches', going)).toBe(going);
    expect(
      shown('generate-content', 'batches', {
        name: 'batches/1',
        done: true,
        response: { inlinedResponses: {} },
        metadata: { state: 'BATCH_STATE_SUCCEEDED', output: {}, endTime: 'now', model: 'm' },
      }),
    ).toEqual({ name: 'batches/1', done: false, metadata: { state: 'BATCH_STATE_RUNNING', model: 'm' } });
    expect(
      shown('generate-content', 'batches', {
        done: false,
        metadata: { state: 'BATCH_STATE_PENDING', output: 1 },
      }),
    ).toEqual({ done: false, metadata: { state: 'BATCH_STATE_PENDING' } });
    const bare = { name: 'batches/1', done: false };
    expect(shown('generate-content', 'batches', bare)).toBe(bare);
    const file = { id: 'f', status: 'ended' };
    expect(shown('messages', 'files', file)).toBe(file);
  });
});

describe('an object that lists ask about anew', () => {
  const moves = (format: Parameters<typeof collectionOf>[0], name: string, seen: JsonObject): boolean =>
    collectionOf(format, name).isMoving?.(seen) === true;
  const now = Math.floor(Date.now() / 1000);

  test('is one that may have changed: its end has passed, or its work is not done', () => {
    expect(moves('chat-completions', 'files', { expires_at: now - 10 })).toBe(true);
    expect(moves('chat-completions', 'files', { expires_at: now + 1_000 })).toBe(false);
    expect(moves('chat-completions', 'files', {})).toBe(false);
    for (const name of ['batches', 'fine_tuning/jobs']) {
      expect(moves('chat-completions', name, { status: 'running' })).toBe(true);
      for (const status of ['completed', 'failed', 'expired', 'cancelled', 'succeeded'])
        expect(moves('chat-completions', name, { status })).toBe(false);
    }
    for (const name of ['vector_stores', 'containers', 'evals'])
      expect(moves('chat-completions', name, {})).toBe(true);
    expect(moves('messages', 'messages/batches', { processing_status: 'in_progress' })).toBe(true);
    expect(moves('messages', 'messages/batches', { processing_status: 'ended' })).toBe(false);
    expect(moves('messages', 'files', {})).toBe(false);
    expect(moves('generate-content', 'files', { state: 'PROCESSING' })).toBe(true);
    expect(moves('generate-content', 'files', { state: 'ACTIVE' })).toBe(false);
    expect(moves('generate-content', 'files', { expirationTime: '2020-01-01T00:00:00Z' })).toBe(true);
    expect(moves('generate-content', 'files', { expirationTime: '2999-01-01T00:00:00Z' })).toBe(false);
    expect(moves('generate-content', 'cachedContents', { expireTime: '2020-01-01T00:00:00Z' })).toBe(true);
    expect(moves('generate-content', 'cachedContents', { expireTime: 'soon' })).toBe(false);
    expect(moves('generate-content', 'fileSearchStores', {})).toBe(true);
    expect(moves('generate-content', 'batches', { done: false })).toBe(true);
    expect(moves('generate-content', 'batches', { done: true })).toBe(false);
  });

  test('has an id that means nothing in a path', () => {
    expect(idIn(collectionOf('messages', 'files'), { id: 'file_1', name: 'x' })).toBe('file_1');
    expect(idIn(collectionOf('generate-content', 'files'), { id: 'x', name: 'files/a-1' })).toBe('a-1');
    expect(idIn(collectionOf('generate-content', 'files'), { name: 'a-1' })).toBe('a-1');
    for (const id of [1, null, '', 'a/b', '..', 'a b', 'x'.repeat(201)])
      expect(idIn(collectionOf('messages', 'files'), { id })).toBeUndefined();
    expect([isId('x'.repeat(200)), isId('_-9')]).toEqual([true, true]);
    expect(() => collectionOf('messages', 'batches')).toThrow('messages has no batches.');
    for (const { format, name, paths } of collections)
      expect(paths).toEqual(
        format === 'generate-content' ? [`/v1beta/${name}`, `/v1/${name}`] : [`/v1/${name}`],
      );
  });
});

describe('the body of a batch of generateContent', () => {
  const of = (inputConfig: unknown, rest: JsonObject = {}): JsonObject =>
    ({ batch: { inputConfig, ...rest } }) as JsonObject;
  const one = { request: { model: 'models/a', contents: [] }, metadata: { key: '1' } };

  test('has its requests in one place', () => {
    expect(fileNameIn(of({ fileName: 'files/f1' }))).toBe('f1');
    expect(fileNameIn({ batch: { input_config: { file_name: 'f1' } } })).toBe('f1');
    expect(fileNameIn(of({ requests: { requests: [one] } }))).toBeUndefined();
    expect(inlineOf(of({ requests: { requests: [one] } }))).toEqual([one]);
    expect(inlineOf(of({ fileName: 'files/f1' }))).toEqual([]);
    for (const [body, param] of [
      [{}, 'batch.inputConfig'],
      [of('x'), 'batch.inputConfig'],
      [of({}), 'batch.inputConfig'],
      [of({ fileName: 'f', requests: {} }), 'batch.inputConfig'],
      [of({ fileName: 'f', file_name: 'f' }), 'batch.file_name'],
      [of({ fileName: 'f' }, { input_config: {} }), 'batch.input_config'],
      [of({ fileName: 1 }), 'batch.inputConfig.fileName'],
    ] as const)
      expect(() => fileNameIn(body as JsonObject)).toThrow(expect.objectContaining({ param }) as Error);
    for (const requests of [{}, { requests: {} }, { requests: ['x'] }, { requests: [one, null] }])
      expect(() => inlineOf(of({ requests }))).toThrow(
        expect.objectContaining({ param: 'batch.inputConfig.requests.requests' }) as Error,
      );
  });

  test('names its model in the batch and in each request, and every name is that of the provider', () => {
    const body = of({ requests: { requests: [one, { request: { contents: [] } }] } }, { model: 'models/a' });
    expect(modelsIn(body)).toEqual(['a', 'a']);
    expect(modelsIn(of({ requests: { requests: [one, { request: 'x' }] } }))).toEqual(['a']);
    expect(withModel(body, 'there')).toEqual({
      batch: {
        model: 'models/there',
        inputConfig: {
          requests: {
            requests: [
              { ...one, request: { ...one.request, model: 'models/there' } },
              { request: { contents: [] } },
            ],
          },
        },
      },
    });
    expect(withModel({ batch: { input_config: { requests: { requests: [one] }, x: 1 } } }, 'there')).toEqual({
      batch: {
        inputConfig: {
          x: 1,
          requests: { requests: [{ ...one, request: { ...one.request, model: 'models/there' } }] },
        },
      },
    });
    const file = of({ fileName: 'files/f1' });
    expect(withModel(file, 'there')).toEqual(file);
    expect(withModel(of({ fileName: 'f' }, { model: 'a' }), 'there')).toEqual(
      of({ fileName: 'f' }, { model: 'models/there' }),
    );
  });

  test('is refused with the path of what has too many fields', () => {
    const many = { a: 1, b: 2, c: 3 };
    const request = (inner: JsonObject, outer: JsonObject = {}): JsonObject =>
      of({ requests: { requests: [{ request: {} }, { request: inner, ...outer }] } });
    for (const [body, param] of [
      [request(many), 'batch.inputConfig.requests.requests[1].request'],
      [request({}, many), 'batch.inputConfig.requests.requests[1]'],
      [of({ fileName: 'f', ...many }), 'batch.inputConfig'],
      [of({ fileName: 'f' }, many), 'batch'],
    ] as const)
      expect(() => checkInline(body, 2)).toThrow(expect.objectContaining({ param }) as Error);
    expect(() => checkInline(request({ a: 1, b: 2 }), 2)).not.toThrow();
  });
});

describe('the model of a batch whose lines name none', () => {
  const accountFor = (batchModel: string | undefined): ProviderAccount =>
    ({
      channel: {
        batchModel,
        upstreamModel: (model: string) => (model === 'mine' ? 'theirs' : undefined),
      },
    }) as unknown as ProviderAccount;
  const lines = (models: readonly string[], unnamed = false): JsonObject & { models: readonly string[] } =>
    ({ models, unnamed }) as unknown as JsonObject & { models: readonly string[] };

  test('is not asked for where lines name theirs', () => {
    expect(modelOfBatch({ model: 'other' }, lines(['mine']), accountFor(undefined))).toBeUndefined();
    expect(() => modelOfBatch({}, lines([], true), accountFor(undefined))).toThrow(
      expect.objectContaining({ code: 'invalid_value', param: 'input_file_id' }) as Error,
    );
  });

  test('is what the body says, at any depth, or what all lines say', () => {
    expect(modelOfBatch({ model: 'mine', x: 1 }, lines([]), accountFor('model'))).toEqual({
      model: 'mine',
      body: { model: 'theirs', x: 1 },
    });
    expect(modelOfBatch({ a: { b: 1 } }, lines(['mine']), accountFor('a.model'))).toEqual({
      model: 'mine',
      body: { a: { b: 1, model: 'theirs' } },
    });
    expect(modelOfBatch({ a: 'x' }, lines(['mine']), accountFor('a.model'))).toEqual({
      model: 'mine',
      body: { a: { model: 'theirs' } },
    });
  });

  test.each([
    [{}, [], /a\.model/],
    [{}, ['mine', 'other'], /a\.model/],
    [{ a: { model: 1 } }, [], /a string/],
    [{ a: { model: 'mine' } }, ['other'], /names the model "other", and the batch another/],
    [{ a: { model: 'mine' } }, ['mine', 'other'], /names the model "other"/],
    [{ a: { model: 'strange' } }, [], /"strange" is not served by the channel that stores the file/],
  ])('is refused where %j and lines of %j disagree', (body, models, message) => {
    expect(() => modelOfBatch(body as JsonObject, lines(models), accountFor('a.model'))).toThrow(
      expect.objectContaining({
        param: 'a.model',
        message: expect.stringMatching(message) as string,
      }) as Error,
    );
  });
});
