import { convertGenAISpanAttributesToOpenInferenceSpanAttributes as converted } from '@arizeai/openinference-genai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reportedUsage } from '../../support/provider-replies.ts';
import { startCollector } from './_collector.ts';
import { answer, callWithClient, dollars, models, respond, startObserved } from './_gateway.ts';
import type { SeenPoint, SeenSpan } from './_otlp.ts';

/*
 * What backends read of what is sent. Their own code, or what it reads with the place where that stands.
 */

let call: SeenSpan;
let attempt: SeenSpan;
let points: readonly SeenPoint[];

beforeAll(async () => {
  const collector = await startCollector({}, 0, afterAll);
  let close: (() => Promise<void>) | undefined;
  const { gateway } = await startObserved({ endpoint: collector.url, content: 'full' }, respond, (job) => {
    close = job;
  });
  await callWithClient(gateway, 'messages', models.messages, true);
  const spans = await collector.waitForSpans(2);
  const [first, second] = spans.toSorted((one) => (one.kind === 'SERVER' ? -1 : 1));
  if (first === undefined || second === undefined) throw new Error('There is no span.');
  [call, attempt] = [first, second];
  // Metrics are exported when the gateway stops, at the latest.
  await close?.();
  ({ points } = collector);
});

describe('Phoenix', () => {
  // Arize-ai/openinference, js/packages/openinference-genai: what Arize converts GenAI spans with.
  test('shows a call as one of a model, with its messages, tokens and settings', () => {
    expect(converted({ ...call.attributes } as Parameters<typeof converted>[0])).toMatchObject({
      'openinference.span.kind': 'LLM',
      'llm.provider': 'anthropic',
      'llm.model_name': expect.any(String),
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.contents.0.message_content.text': 'What is the weather in Paris?',
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.contents.0.message_content.text':
        answer.parts[0] && 'text' in answer.parts[0] ? answer.parts[0].text : '',
      'llm.token_count.prompt': reportedUsage.input,
      'llm.token_count.completion': reportedUsage.output,
      'llm.invocation_parameters': expect.stringContaining('"temperature":0.5'),
    });
  });

  // Arize-ai/phoenix, src/phoenix/trace/gen_ai/conversion.py: get_openinference_attributes, as of commit 10c483a0.
  test.each([
    ['gen_ai.operation.name', 'chat'],
    ['gen_ai.provider.name', 'anthropic'],
    ['gen_ai.request.model', models.messages],
    ['gen_ai.usage.input_tokens', reportedUsage.input],
    ['gen_ai.usage.output_tokens', reportedUsage.output],
    ['gen_ai.response.finish_reasons', ['end_turn']],
    ['gen_ai.response.id', 'msg_1'],
  ])('reads %s', (name, value) => {
    expect(call.attributes[name]).toEqual(value);
  });
});

describe('Langfuse', () => {
  // langfuse/langfuse, packages/shared/src/server/otel/OtelIngestionProcessor.ts, as of commit 62751446.
  test('takes a call for a generation, and an attempt for a span', () => {
    // ObservationTypeMapper.ts: `gen_ai.operation.name` first, else whatever names a model.
    expect(call.attributes).toMatchObject({ 'gen_ai.operation.name': 'chat' });
    for (const name of ['gen_ai.operation.name', 'gen_ai.request.model', 'gen_ai.response.model', 'model'])
      expect(attempt.attributes).not.toHaveProperty([name]);
  });

  test('reads the cost, and counts no other figure as tokens', () => {
    // extractCostDetails: `gen_ai.usage.cost`. extractGenericGenAiUsageDetails: every other `gen_ai.usage.` member.
    expect(call.attributes['gen_ai.usage.cost']).toBe(dollars);
    const usage = Object.keys(call.attributes).filter((name) => name.startsWith('gen_ai.usage.'));
    const known = new Set([
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.cost',
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_creation.input_tokens',
      'gen_ai.usage.reasoning.output_tokens',
    ]);
    expect(usage.filter((name) => !known.has(name))).toEqual([]);
  });

  test('reads the time to the first token', () => {
    // extractCompletionStartTime: a date.
    const at = Date.parse(String(call.attributes['langfuse.observation.completion_start_time']));
    expect(at).toBeGreaterThanOrEqual(Math.floor(call.start));
    expect(at).toBeLessThanOrEqual(Math.ceil(call.end));
  });

  test('reads settings, input and output', () => {
    // extractModelParameters: `gen_ai.request.*`. extractInputAndOutput: `gen_ai.input.messages`, `gen_ai.output.messages`.
    expect(call.attributes).toMatchObject({
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 100,
      'gen_ai.input.messages': expect.stringContaining('What is the weather in Paris?'),
      'gen_ai.output.messages': expect.stringContaining('fine today'),
    });
  });
});

describe('Grafana', () => {
  // Metrics of the AI Observability SDK (grafana.com/docs/grafana-cloud/machine-learning/ai-observability/configure/sdk), of its GenAI dashboards
  // (gen_ai_usage_cost_USD_*), and of the conventions for servers.
  test.each([
    ['gen_ai.client.operation.duration', 's'],
    ['gen_ai.client.token.usage', '{token}'],
    ['gen_ai.server.request.duration', 's'],
    ['gen_ai.server.time_to_first_token', 's'],
    ['gen_ai.server.time_per_output_token', 's'],
    ['gen_ai.usage.cost', 'USD'],
  ])('finds %s in %s', (metric, unit) => {
    const found = points.filter((point) => point.metric === metric);
    expect(found.length).toBeGreaterThan(0);
    for (const point of found) {
      expect(point).toMatchObject({ unit, type: 'histogram', temporality: 2, count: 1 });
      expect(point.attributes).toMatchObject({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.request.model': models.messages,
      });
    }
  });

  test('finds tokens by their type, and the service by its name', () => {
    const tokens = points.filter(({ metric }) => metric === 'gen_ai.client.token.usage');
    expect(tokens.map(({ attributes, value }) => [attributes['gen_ai.token.type'], value])).toEqual([
      ['input', reportedUsage.input],
      ['output', reportedUsage.output],
    ]);
    // Tempo and its service graphs: service.name, the kinds of spans, and the status.
    expect(call).toMatchObject({ kind: 'SERVER', resource: { 'service.name': 'sluice' } });
    expect(attempt.kind).toBe('CLIENT');
  });
});
