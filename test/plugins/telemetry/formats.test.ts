import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formats, type FormatName } from '../../clients/sdks.ts';
import { reportedUsage } from '../../support/provider-replies.ts';
import { startCollector, type Collector } from './_collector.ts';
import { callWithClient, dollars, models, respond, startObserved, type Observed } from './_gateway.ts';

/** The channel, and the provider by the GenAI conventions, behind the model that is native to a format. */
const channels: Readonly<Record<FormatName, readonly [channel: string, provider: string]>> = {
  'chat-completions': ['openai-eu', 'openai'],
  responses: ['openai-eu', 'openai'],
  messages: ['anthropic', 'anthropic'],
  'generate-content': ['gemini', 'gcp.gemini'],
};

/** By format of the client: the format of a channel that is not native to it. */
const foreign: Readonly<Record<FormatName, FormatName>> = {
  'chat-completions': 'messages',
  responses: 'messages',
  messages: 'chat-completions',
  'generate-content': 'chat-completions',
};

const cases = formats.flatMap((client) =>
  [client, foreign[client]].flatMap((channel) =>
    [false, true].flatMap((stream) =>
      (['off', 'full'] as const).map((content) => ({ client, channel, stream, content })),
    ),
  ),
);

let collector: Collector;
const gateways = new Map<string, Observed>();

beforeAll(async () => {
  collector = await startCollector({}, 0, afterAll);
  for (const content of ['off', 'full'] as const)
    // oxlint-disable-next-line no-await-in-loop -- one beside the other
    gateways.set(content, await startObserved({ endpoint: collector.url, content }, respond, afterAll));
});
beforeEach(() => {
  collector.got.length = 0;
});

describe('a chat of an official client', () => {
  test.each(cases)(
    'in $client at a channel of $channel, stream: $stream, content: $content, has a span with its figures and one for its attempt',
    async ({ client, channel, stream, content }) => {
      const model = models[channel];
      const observed = gateways.get(content);
      if (observed === undefined) throw new Error('There is no such gateway.');
      await callWithClient(observed.gateway, client, model, stream);
      await collector.waitForSpans(2);
      const [call, attempt, ...others] = collector.spans.toSorted((one) => (one.kind === 'SERVER' ? -1 : 1));
      expect(others).toEqual([]);
      const operation = client === 'generate-content' ? 'generate_content' : 'chat';
      const [id, provider] = channels[channel];
      expect(call).toMatchObject({
        name: `${operation} ${model}`,
        kind: 'SERVER',
        parentSpanId: '',
        status: 'UNSET',
        attributes: {
          'gen_ai.operation.name': operation,
          'gen_ai.provider.name': provider,
          'gen_ai.request.model': model,
          'gen_ai.request.temperature': 0.5,
          'gen_ai.request.max_tokens': 100,
          'gen_ai.response.model': expect.any(String),
          'gen_ai.response.finish_reasons': [expect.stringMatching(/^(stop|STOP|end_turn|completed)$/)],
          'gen_ai.usage.input_tokens': reportedUsage.input,
          'gen_ai.usage.output_tokens': reportedUsage.output,
          'gen_ai.usage.cost': dollars,
          'http.request.method': 'POST',
          'http.response.status_code': 200,
          'server.address': '127.0.0.1',
          'sluice.call.id': expect.stringMatching(/^req_/),
          'sluice.channel': id,
          'sluice.ended': 'complete',
          'sluice.format': client,
          'sluice.key.name': 'test',
        },
      });
      const { attributes = {}, start = 0, end = 0 } = call ?? {};
      // generateContent has ids only where the provider sends them.
      if (channel !== 'generate-content') expect(attributes).toHaveProperty(['gen_ai.response.id']);
      expect(attributes['gen_ai.request.stream']).toBe(stream ? true : undefined);
      expect(typeof attributes['gen_ai.response.time_to_first_chunk']).toBe(stream ? 'number' : 'undefined');
      expect(end).toBeGreaterThanOrEqual(start);
      expect(attempt).toMatchObject({
        name: `attempt ${id}`,
        kind: 'CLIENT',
        traceId: call?.traceId,
        parentSpanId: call?.spanId,
        attributes: {
          'gen_ai.provider.name': provider,
          'http.response.status_code': 200,
          'sluice.attempt': 1,
          'sluice.attempt.model': model,
          'sluice.channel': id,
          'sluice.channel.key.id': expect.any(String),
        },
      });
      // Where a backend adds up spans by their model, an attempt must not count as a second call.
      expect(attempt?.attributes).not.toHaveProperty(['gen_ai.request.model']);
      const [input, output] = ['gen_ai.input.messages', 'gen_ai.output.messages'].map(
        (name) => attributes[name],
      );
      if (content === 'off') expect([input, output]).toEqual([undefined, undefined]);
      else {
        expect(JSON.parse(String(input))).toEqual([
          { role: 'user', parts: [{ type: 'text', content: 'What is the weather in Paris?' }] },
        ]);
        expect(JSON.parse(String(output))).toEqual([
          {
            role: 'assistant',
            parts: [{ type: 'text', content: 'The weather in Paris is fine today.' }],
            finish_reason: expect.any(String),
          },
        ]);
      }
    },
  );
});
