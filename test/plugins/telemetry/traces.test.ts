import { describe, expect, onTestFinished, test } from 'vitest';
import {
  defineConfig,
  definePlugin,
  gathered,
  GatewayError,
  type JsonObject,
} from '../../../core/sdk/index.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
import demo from '../../../channels/demo/index.ts';
import mistralChannel from '../../../channels/mistral/index.ts';
import openaiChannel from '../../../channels/openai.ts';
import { startGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import { startCollector } from './_collector.ts';
import { callWithClient, models, respond, startObserved } from './_gateway.ts';
import type { SeenSpan } from './_otlp.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const sampled = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'vendor=one,other=two' };

const isCall = ({ kind }: SeenSpan): boolean => kind === 'SERVER';
const isAttempt = ({ kind }: SeenSpan): boolean => kind === 'CLIENT';

describe('the trace of a client', () => {
  test('is continued, with its state', async () => {
    const collector = await startCollector();
    const { gateway, provider } = await startObserved({ endpoint: collector.url });
    await callWithClient(gateway, 'chat-completions', models['chat-completions'], false, sampled);
    const [call] = await collector.waitForSpans(1, isCall);
    expect(call).toMatchObject({ traceId, parentSpanId: spanId, traceState: 'vendor=one,other=two' });
    // Nobody who is not named learns of it.
    expect(provider.requests[0]?.headers).not.toHaveProperty('traceparent');
    expect(provider.requests[0]?.headers).not.toHaveProperty('tracestate');
  });

  test.each(['00-xyz-1-01', `00-${'0'.repeat(32)}-${spanId}-01`, 'x'.repeat(5_000), ''])(
    'is not continued where its header is malformed: %#',
    async (traceparent) => {
      const collector = await startCollector();
      const { gateway } = await startObserved({ endpoint: collector.url });
      await callWithClient(gateway, 'messages', models['chat-completions'], false, { traceparent });
      const [call] = await collector.waitForSpans(1, isCall);
      expect(call).toMatchObject({ parentSpanId: '', traceId: expect.stringMatching(/^[0-9a-f]{32}$/) });
    },
  );

  test('that is not sampled leaves no span, but a log record with its id', async () => {
    const collector = await startCollector();
    const { gateway } = await startObserved({ endpoint: collector.url });
    const traceparent = `00-${traceId}-${spanId}-00`;
    await callWithClient(gateway, 'chat-completions', models['chat-completions'], false, { traceparent });
    await expect.poll(() => collector.records.length).toBe(1);
    expect(collector.records[0]).toMatchObject({ traceId, severity: 'INFO' });
    expect(collector.spans).toEqual([]);
  });

  test('is recorded where its caller sampled it, also when no trace begins here', async () => {
    const collector = await startCollector();
    const { gateway } = await startObserved({ endpoint: collector.url, sampling: 0 });
    await callWithClient(gateway, 'chat-completions', models['chat-completions'], false);
    await callWithClient(gateway, 'chat-completions', models['chat-completions'], false, sampled);
    await collector.waitForSpans(2);
    await expect.poll(() => collector.records.length).toBe(2);
    expect(collector.spans.map((span) => span.traceId)).toEqual([traceId, traceId]);
  });

  test('is forwarded to the channels that are named, each attempt as a span of its own', async () => {
    const collector = await startCollector();
    let count = 0;
    const { gateway, provider } = await startObserved(
      { endpoint: collector.url, forward: ['openai-eu'] },
      (request, response) => {
        count += 1;
        if (count > 1) return respond(request, response);
        // Too early: the same target is asked once more.
        response.writeHead(425, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"Too early."}}');
      },
    );
    await callWithClient(gateway, 'chat-completions', models['chat-completions'], false, sampled);
    await callWithClient(gateway, 'messages', models.messages, false, sampled);
    await collector.waitForSpans(2, isCall);
    const attempts = await collector.waitForSpans(3, isAttempt);
    const sent = provider.requests.map(({ headers }) => headers);
    expect(sent.map(({ tracestate }) => tracestate)).toEqual([
      'vendor=one,other=two',
      'vendor=one,other=two',
      undefined,
    ]);
    // The provider's own spans stand below the attempts.
    expect(sent.slice(0, 2).map(({ traceparent }) => traceparent)).toEqual(
      attempts
        .filter(({ attributes }) => attributes['sluice.channel'] === 'openai-eu')
        .map((span) => `00-${traceId}-${span.spanId}-01`),
    );
    expect(sent[2]).not.toHaveProperty('traceparent');
  });
});

describe('an attempt that fails', () => {
  test('has a span with its reason, its times and its key, beside that of the one that answers', async () => {
    const collector = await startCollector();
    const broken = await startUpstream((_request, response) => {
      response.writeHead(503, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"secret words of the provider"}}');
    });
    const working = await startUpstream(respond);
    const model = 'gpt-4.1';
    const gateway = await startGateway(
      defineConfig({
        plugins: [telemetry({ endpoint: collector.url })],
        channels: [
          mistralChannel({
            id: 'first',
            key: 'k',
            baseUrl: `${broken.url}/v1`,
            models: [model],
            priority: 5,
          }),
          openaiChannel({ id: 'second', key: 'k', baseUrl: `${working.url}/v1`, models: [model] }),
        ],
      }),
    );
    onTestFinished(async () => {
      await gateway.close();
      await broken.close();
      await working.close();
    });
    await callWithClient(gateway, 'chat-completions', model, true);
    const [call] = await collector.waitForSpans(1, isCall);
    const attempts = await collector.waitForSpans(2, isAttempt);
    const [failed, answered] = attempts.toSorted((one, other) => one.start - other.start);
    expect(failed).toMatchObject({
      name: 'attempt first',
      status: 'ERROR',
      attributes: {
        'error.type': expect.any(String),
        'http.response.status_code': 503,
        'gen_ai.provider.name': 'mistral_ai',
        'sluice.attempt': 1,
        'sluice.attempt.failure': expect.any(String),
        'sluice.channel.key.id': expect.any(String),
      },
    });
    expect(answered).toMatchObject({
      name: 'attempt second',
      status: 'UNSET',
      attributes: {
        'gen_ai.provider.name': 'openai',
        'sluice.attempt': 2,
        'http.response.status_code': 200,
      },
    });
    // One behind the other, both within the call.
    expect(failed?.start).toBeGreaterThanOrEqual(call?.start ?? 0);
    expect(answered?.start).toBeGreaterThanOrEqual(failed?.end ?? 0);
    expect(answered?.end).toBeLessThanOrEqual((call?.end ?? 0) + 0.2);
    // What a provider says may quote the request.
    expect(JSON.stringify(collector.got)).not.toContain('secret words');
    expect(call).toMatchObject({ status: 'UNSET', attributes: { 'http.response.status_code': 200 } });
  });
});

describe('a parallel attempt', () => {
  test('that was given up has a span without an error, beside that of the one that answered first', async () => {
    const collector = await startCollector();
    const silent = await startUpstream(() => {});
    const quick = await startUpstream(respond);
    const model = 'gpt-4.1';
    const gateway = await startGateway(
      defineConfig({
        plugins: [telemetry({ endpoint: collector.url })],
        routing: { hedge: { after: 100 } },
        channels: [
          openaiChannel({
            id: 'silent',
            key: 'k',
            baseUrl: `${silent.url}/v1`,
            models: [model],
            priority: 5,
          }),
          openaiChannel({ id: 'quick', key: 'k', baseUrl: `${quick.url}/v1`, models: [model] }),
        ],
      }),
    );
    onTestFinished(async () => {
      await gateway.close();
      await silent.close();
      await quick.close();
    });
    await callWithClient(gateway, 'chat-completions', model, true);
    const attempts = await collector.waitForSpans(2, isAttempt);
    const [first, second] = attempts.toSorted((one, other) => one.start - other.start);
    expect(first).toMatchObject({
      name: 'attempt silent',
      status: 'UNSET',
      attributes: { 'sluice.attempt.failure': 'hedged', 'sluice.channel.key.id': expect.any(String) },
    });
    expect(second).toMatchObject({ name: 'attempt quick', status: 'UNSET' });
    // They ran side by side.
    expect(second?.start).toBeLessThan(first?.end ?? 0);
  });
});

describe('a call that goes wrong', () => {
  test('has the code of its error, and an error status where it is no mistake of the client', async () => {
    const collector = await startCollector();
    const { gateway } = await startObserved({ endpoint: collector.url }, (_request, response) => {
      response.writeHead(500, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"broken"}}');
    });
    const send = (body: JsonObject, key: string): Promise<Response> =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const chat = { model: models['chat-completions'], messages: [{ role: 'user', content: 'Hi' }] };
    const answers = [
      await send(chat, gateway.key),
      await send(chat, 'sk-wrong'),
      await send({ ...chat, messages: 'Hi' }, gateway.key),
    ];
    const calls = await collector.waitForSpans(3, isCall);
    expect(calls.map(({ status, attributes }) => [attributes['http.response.status_code'], status])).toEqual(
      answers.map(({ status }) => [status, status >= 500 ? 'ERROR' : 'UNSET']),
    );
    for (const { attributes } of calls) expect(attributes['error.type']).toEqual(expect.any(String));
    // It has no more than its span: nobody was asked.
    expect(calls[1]?.attributes).toMatchObject({ 'gen_ai.provider.name': 'sluice' });
    await expect
      .poll(() => collector.records.map(({ severity }) => severity))
      .toEqual(['ERROR', 'WARN', 'WARN']);
  });

  test('in the middle of its response is an error of the call and of the attempt that answered', async () => {
    const collector = await startCollector();
    const { gateway } = await startObserved({ endpoint: collector.url }, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n',
        () => response.destroy(),
      );
    });
    await expect(
      callWithClient(gateway, 'chat-completions', models['chat-completions'], true),
    ).rejects.toThrow(/broke|stream|upstream|terminated|error/i);
    const [call] = await collector.waitForSpans(1, isCall);
    const [attempt] = await collector.waitForSpans(1, isAttempt);
    expect(call).toMatchObject({
      status: 'ERROR',
      attributes: { 'sluice.ended': 'interrupted', 'gen_ai.response.finish_reasons': ['error'] },
    });
    expect(attempt).toMatchObject({
      status: 'ERROR',
      attributes: { 'error.type': call?.attributes['error.type'] },
    });
    expect(attempt?.attributes).not.toHaveProperty(['sluice.attempt.failure']);
  });

  test('because its client left is no error', async () => {
    const collector = await startCollector();
    const { gateway } = await startObserved({ endpoint: collector.url }, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n',
      );
    });
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: models['chat-completions'],
        stream: true,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
      signal: leaving.signal,
    });
    await answer.body?.getReader().read();
    leaving.abort();
    const [call] = await collector.waitForSpans(1, isCall);
    expect(call).toMatchObject({
      status: 'UNSET',
      attributes: { 'sluice.ended': 'left', 'error.type': 'client_closed_request' },
    });
  });
});

describe('calls of plugins', () => {
  /** Asks another model before each chat, and takes its time. */
  const judging = definePlugin({
    name: 'judging',
    stage: 'shape',
    setup: (_options, tools) =>
      async function judges(call, next) {
        if (call.operation !== 'chat' || call.parent !== undefined) return next(call);
        const body = { model: 'demo', messages: [{ role: 'user', content: 'Is this fine?' }] };
        const own = tools.subcall(call, { operation: 'chat', format: 'chat-completions', body });
        try {
          const events = await gathered(own.call, await own.send());
          if (events.length === 0) throw new GatewayError('forbidden', 'It is not.');
        } finally {
          own.end();
        }
        return next(call);
      },
  });

  test('stand below the call on whose behalf they are made, and plugins that take time have spans', async () => {
    const collector = await startCollector();
    const gateway = await startGateway({
      plugins: [judging(), telemetry({ endpoint: collector.url, pluginSpans: true })],
      channels: [demo()],
    });
    onTestFinished(() => gateway.close());
    await callWithClient(gateway, 'chat-completions', 'demo', false, sampled);
    const calls = await collector.waitForSpans(2, isCall);
    const outer = calls.find(({ parentSpanId }) => parentSpanId === spanId);
    const inner = calls.find((span) => span !== outer);
    expect(inner).toMatchObject({ traceId, parentSpanId: outer?.spanId });
    const [plugin] = await collector.waitForSpans(1, ({ name }) => name === 'plugin judging');
    expect(plugin).toMatchObject({
      kind: 'INTERNAL',
      traceId,
      parentSpanId: outer?.spanId,
      attributes: { 'sluice.plugin': 'judging' },
    });
    // The length of a call is rounded to a tenth of a millisecond, that of a plugin's time is not.
    const rounding = 0.06;
    expect(plugin?.end).toBeGreaterThanOrEqual((inner?.end ?? 0) - rounding);
  });
});
