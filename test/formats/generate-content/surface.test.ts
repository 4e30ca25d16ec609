import { Router } from '@koa/router';
import { describe, expect, test } from 'vitest';
import { errorTable, GatewayError, type ErrorCode } from '../../../core/sdk/errors.ts';
import generateContent from '../../../core/formats/generate-content/index.ts';
import type { Route } from '../../../core/sdk/format.ts';
import type { ListedModel } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { chat, context, countTokens, target, thrown } from './support.ts';

/** The route that a path takes, and what it says. */
function route(method: 'GET' | 'POST', address: string, headers: Record<string, string> = {}) {
  const router = new Router();
  const byLayer = new Map<unknown, Route>();
  for (const one of generateContent.routes)
    byLayer.set(
      router.register(one.path, [one.method], () => {}),
      one,
    );
  const url = new URL(address, 'http://x');
  const layer = router.match(url.pathname, method).pathAndMethod.at(-1);
  const found =
    byLayer.get(layer) ??
    byLayer.get(router.stack.find((one) => one === layer)) ??
    generateContent.routes.find(({ path }) => path === layer?.path);
  if (found === undefined || layer === undefined) return undefined;
  const raw = layer.params(url.pathname, layer.captures(url.pathname), {}) as Record<
    string,
    string | string[]
  >;
  const matched = Object.fromEntries(
    Object.entries(raw).map(([key, value]) => [key, Array.isArray(value) ? value.join('/') : value]),
  );
  return { operation: found.operation, params: found.params?.(matched, url.searchParams, headers) };
}

describe('paths', () => {
  test.each([
    ['/v1beta/models/m:generateContent', 'chat', { model: 'm', stream: false, framing: 'none' }],
    ['/v1/models/m:generateContent', 'chat', { model: 'm', stream: false, framing: 'none' }],
    ['/v1beta/models/m:streamGenerateContent?alt=sse', 'chat', { model: 'm', stream: true, framing: 'sse' }],
    ['/v1beta/models/m:streamGenerateContent', 'chat', { model: 'm', stream: true, framing: 'ndjson' }],
    [
      '/v1beta/models/m:streamGenerateContent?alt=json',
      'chat',
      { model: 'm', stream: true, framing: 'json-array' },
    ],
    [
      '/v1beta/models/models/models/m:generateContent',
      'chat',
      { model: 'm', stream: false, framing: 'none' },
    ],
    [
      '/v1beta/models/org/a:8b:generateContent',
      'chat',
      { model: 'org/a:8b', stream: false, framing: 'none' },
    ],
    [
      '/v1beta/models/org%2Fa%3A8b:generateContent',
      'chat',
      { model: 'org/a:8b', stream: false, framing: 'none' },
    ],
    ['/v1beta/tunedModels/mine:generateContent', 'chat', { model: 'mine', stream: false, framing: 'none' }],
    ['/v1/models/m:countTokens', 'count-tokens', { model: 'm', stream: false, framing: 'none' }],
  ])('POST %s', (path, operation, params) => {
    expect(route('POST', path)).toEqual({ operation, params });
  });

  test('lists', () => {
    expect(route('GET', '/v1beta/models')?.operation).toBe('list-models');
    expect(route('GET', '/v1beta/models/org/m')).toEqual({
      operation: 'get-model',
      params: { model: 'org/m' },
    });
    expect(route('POST', '/v1beta/models/m:asyncBatchEmbedContent')).toBeUndefined();
  });

  test('an event stream can be asked for by Accept, and other alt values are refused', () => {
    expect(
      route('POST', '/v1/models/m:streamGenerateContent', { accept: 'text/event-stream' })?.params?.framing,
    ).toBe('sse');
    expect(
      route('POST', '/v1/models/m:streamGenerateContent?alt=json', { accept: 'text/event-stream' })?.params
        ?.framing,
    ).toBe('json-array');
    for (const alt of ['media', 'proto', 'xml']) {
      expect(
        (thrown(() => route('POST', `/v1/models/m:streamGenerateContent?alt=${alt}`)) as GatewayError).param,
      ).toBe('alt');
    }
    expect(
      route('POST', '/v1/models/m:streamGenerateContent?alt=json;enum-encoding=int&key=x')?.params?.framing,
    ).toBe('json-array');
  });

  test('the framing is the client’s', () => {
    expect(chat.clientFraming({}, { model: 'm', stream: true })).toBe('ndjson');
    expect(chat.clientFraming({}, { model: 'm', stream: true, framing: 'sse' })).toBe('sse');
    expect(chat.clientFraming({}, { model: 'm' })).toBe('none');
    expect(chat.toleratesComments).toBe(false);
    expect(chat.encodeStream!(context()).keepAlive()).toEqual([]);
  });
});

describe('errors', () => {
  const words: Record<number, string> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    405: 'INVALID_ARGUMENT',
    408: 'DEADLINE_EXCEEDED',
    409: 'ABORTED',
    413: 'INVALID_ARGUMENT',
    415: 'INVALID_ARGUMENT',
    422: 'INVALID_ARGUMENT',
    429: 'RESOURCE_EXHAUSTED',
    499: 'CANCELLED',
    500: 'INTERNAL',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
    529: 'UNAVAILABLE',
  };
  test.each(Object.keys(errorTable) as ErrorCode[])('%s has the shape that clients read', (code) => {
    const error = new GatewayError(code, 'What happened.');
    const { status, body, headers } = generateContent.errorReply(error, 'req_1');
    expect(status).toBe(error.status);
    expect(body).toMatchObject({ error: { code: status, message: 'What happened.', status: words[status] } });
    expect(headers['x-request-id']).toBe('req_1');
    expect(headers['x-should-retry']).toBe(
      (status === 409 || status === 429 || status >= 500) && !error.retryable ? 'false' : undefined,
    );
  });

  test('the golden one has nothing more', () => {
    const error = new GatewayError('model_not_allowed', 'This API key has no access to model m.', {
      param: 'model',
    });
    expect(generateContent.errorReply(error, 'r').body).toEqual({
      error: { code: 403, message: 'This API key has no access to model m.', status: 'PERMISSION_DENIED' },
    });
  });

  test('a bad key, a wait and a wrong field are told in details', () => {
    const details = (error: GatewayError) =>
      (generateContent.errorReply(error, 'r').body.error as JsonObject).details;
    expect(details(new GatewayError('invalid_api_key', 'Bad key.'))).toMatchObject([
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
    ]);
    const limited = new GatewayError('rate_limit_exceeded', 'Slow down.', { retryAfter: 33.2 });
    expect(details(limited)).toEqual([
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ description: 'Slow down.' }] },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34s' },
    ]);
    expect(generateContent.errorReply(limited, 'r').headers['retry-after']).toBe('34');
    const wrong = new GatewayError('invalid_type', 'contents must be an array.', { param: 'contents' });
    expect(details(wrong)).toEqual([
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'contents', description: 'contents must be an array.' }],
      },
    ]);
  });
});

describe('the model list', () => {
  const all: ListedModel[] = Array.from({ length: 60 }, (_, index) => ({
    id: `m-${index}`,
    created: 0,
    ownedBy: 'x',
  }));
  const list = (query: string) =>
    generateContent.models!.list(all, new URLSearchParams(query)) as {
      models: { name: string }[];
      nextPageToken?: string;
    };

  test('a model as clients read it', () => {
    expect(
      generateContent.models!.one({
        id: 'org/m',
        created: 1,
        ownedBy: 'x',
        inputLimit: 100,
        outputLimit: 10,
        thinking: true,
      }),
    ).toMatchObject({
      name: 'models/org/m',
      displayName: 'org/m',
      inputTokenLimit: 100,
      outputTokenLimit: 10,
      thinking: true,
      supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
    });
  });

  test('pages', () => {
    const first = list('');
    expect([first.models.length, typeof first.nextPageToken]).toEqual([50, 'string']);
    const second = list(`pageToken=${first.nextPageToken}`);
    expect([
      second.models.map(({ name }) => name).slice(0, 1),
      second.models.length,
      second.nextPageToken,
    ]).toEqual([['models/m-50'], 10, undefined]);
    expect(list('pageSize=5000').models).toHaveLength(60);
    expect(list('page_size=7').models).toHaveLength(7);
    expect(list('pageSize=0').models).toHaveLength(50);
    expect(generateContent.models!.list([], new URLSearchParams())).toEqual({ models: [] });
  });

  test('nonsense is refused', () => {
    for (const query of ['pageSize=x', 'pageSize=-1', 'pageSize=1.5'])
      expect((thrown(() => list(query)) as GatewayError).param).toBe('pageSize');
    expect((thrown(() => list('pageToken=nonsense')) as GatewayError).param).toBe('pageToken');
  });
});

describe('countTokens', () => {
  const params = { model: 'm' };
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
  const there = (body: JsonObject, model = 'm') =>
    countTokens.encodeRequest(countTokens.decodeRequest(body, params), target({ model }));

  test.each<[string, JsonObject]>([
    ['contents', { contents }],
    [
      'contents and more',
      {
        contents,
        systemInstruction: { parts: [{ text: 'x' }] },
        tools: [{ functionDeclarations: [{ name: 'f' }] }],
        odd: 1,
      },
    ],
    [
      'a whole request',
      {
        generateContentRequest: {
          model: 'models/m',
          contents,
          systemInstruction: { parts: [{ text: 'x' }] },
          generationConfig: { temperature: 1 },
          odd: 1,
        },
      },
    ],
  ])('%s there and back', (_what, body) => {
    const { body: back, path } = there(body);
    expect(JSON.parse(JSON.stringify(back))).toEqual(body);
    expect(path).toBe('/models/m:countTokens');
  });

  test('the model inside follows the route', () => {
    expect(there({ generate_content_request: { model: 'models/m', contents } }, 'other').body).toEqual({
      generateContentRequest: { model: 'models/other', contents },
    });
    expect(
      countTokens.patch({ generateContentRequest: { model: 'models/m', contents } }, { model: 'other' }, {}),
    ).toEqual({ generateContentRequest: { model: 'models/other', contents } });
  });

  test('another format’s request is counted whole', () => {
    const request = { ...countTokens.decodeRequest({ contents }, params), format: 'messages' };
    expect(countTokens.encodeRequest(request, target()).body).toEqual({ contents });
    const system = [{ role: 'system' as const, content: [{ type: 'text' as const, text: 'x' }] }];
    expect(countTokens.encodeRequest({ ...request, system }, target()).body).toMatchObject({
      generateContentRequest: { model: 'models/m', systemInstruction: { parts: [{ text: 'x' }] } },
    });
  });

  test('errors name the path in the wrapper', () => {
    expect(
      (
        thrown(() =>
          countTokens.validate({ generateContentRequest: { contents: [{ parts: 1 }] } }, params),
        ) as GatewayError
      ).param,
    ).toBe('generateContentRequest.contents[0].parts');
    expect(
      (
        thrown(() =>
          countTokens.validate({ contents, generateContentRequest: { contents } }, params),
        ) as GatewayError
      ).param,
    ).toBe('generateContentRequest');
    expect((thrown(() => countTokens.validate({}, params)) as GatewayError).param).toBe('contents');
  });

  test('the count', () => {
    const reply = {
      totalTokens: 31,
      cachedContentTokenCount: 4,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 31 }],
    };
    const encoder = countTokens.encodeWhole(context());
    for (const event of countTokens.decodeWhole(reply, {})) encoder.event(event);
    expect(encoder.end()).toEqual(reply);
    expect(countTokens.decodeWhole({ totalTokens: '7' }, {})).toEqual([
      { type: 'result', value: { tokens: 7 } },
    ]);
    expect((thrown(() => countTokens.decodeWhole({}, {})) as GatewayError).code).toBe('upstream_error');
    expect(
      (
        thrown(() =>
          countTokens.decodeWhole({ error: { code: 429, message: 'x', status: 'RESOURCE_EXHAUSTED' } }, {}),
        ) as GatewayError
      ).code,
    ).toBe('rate_limit_exceeded');
  });
});

test('settings are named in the client’s words', () => {
  expect(chat.settingPath('topP')).toBe('generationConfig.topP');
  expect(chat.settingPath('reasoning')).toBe('generationConfig.thinkingConfig');
  expect(chat.settingPath('modalities')).toBe('generationConfig.responseModalities');
  expect(chat.settingPath('serviceTier')).toBe('serviceTier');
  expect(chat.settingPath('user')).toBe('user');
});

test('usage is tapped from frames and whole bodies', () => {
  const tap = chat.usageTap();
  expect(tap.read('{"candidates":[]}')).toBeUndefined();
  expect(
    tap.read('{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}'),
  ).toMatchObject({ input: 3, output: 2 });
  expect(tap.read('{"usageMetadata":')).toBeUndefined();
  // What Vertex AI says in all chunks but the last: it is no count, and nobody may be charged for nothing.
  expect(tap.read('{"usageMetadata":{"trafficType":"ON_DEMAND"}}')).toBeUndefined();
});
