import {
  Agent,
  OpenAIConversationsSession,
  OpenAIProvider,
  OpenAIResponsesCompactionSession,
  Runner,
  tool,
  withResponsesWebSocketSession,
  type AgentInputItem,
  type Tool,
} from '@openai/agents';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { citySchema } from './conversation.ts';
import { formats, openai } from './sdks.ts';

let gateway: TestGateway;
let runner: Runner;

beforeAll(async () => {
  gateway = await startGateway({
    channels: formats.map((format) =>
      demo({
        id: format,
        speaks: [format],
        models: {
          [`via-${format}`]: 'demo',
          [`thinks-${format}`]: 'demo-thinking',
          // The compacting session takes none but the vendor's own names.
          [`gpt-${format}`]: 'demo',
        },
      }),
    ),
  });
  runner = new Runner({
    modelProvider: new OpenAIProvider({ openAIClient: openai(gateway), useResponses: true }),
    tracingDisabled: true,
  });
});
afterAll(() => gateway.close());

const named = (name: string, result: string): Tool =>
  tool({
    name,
    description: `Gives ${result}`,
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => `${result} in ${city}`,
  });
const tools = [named('get_weather', 'sun'), named('get_time', 'noon')];

describe.each(formats)('an agent of the Agents SDK on a %s channel', (format) => {
  const agent = new Agent({ name: 'helper', instructions: 'Help.', model: `via-${format}`, tools });

  test('calls its tools one after the other and answers', async () => {
    const result = await runner.run(agent, 'Please call get_weather then get_time');
    expect(result.finalOutput).toBe('get_time returned: noon in demo city');
    expect(result.rawResponses).toHaveLength(3);
    expect(result.rawResponses.every(({ usage }) => usage.inputTokens > 0 && usage.outputTokens > 0)).toBe(
      true,
    );
  });

  test('calls two tools at once, streamed', async () => {
    const result = await runner.run(agent, 'Please call get_weather and get_time', { stream: true });
    let text = '';
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    expect(text).toBe('get_weather returned: sun in demo city\nget_time returned: noon in demo city');
    expect(result.finalOutput).toBe(text);
  });

  test('thinks, and its reasoning goes back with the results', async () => {
    const thinker = agent.clone({
      model: `thinks-${format}`,
      modelSettings: { store: false, reasoning: { effort: 'high', summary: 'auto' } },
    });
    const result = await runner.run(thinker, 'Please call get_weather', { stream: true });
    for await (const _ of result);
    expect(result.newItems.some(({ type }) => type === 'reasoning_item')).toBe(true);
    expect(result.finalOutput).toBe('get_weather returned: sun in demo city');
  });

  test('goes on from the previous response alone', async () => {
    const first = await runner.run(agent, 'Remember the word heron. Please call get_weather');
    const second = await runner.run(agent, 'Thank you', { previousResponseId: String(first.lastResponseId) });
    expect(second.finalOutput).toBe('You said: Thank you');
    const { input_tokens: longer } = await openai(gateway).responses.inputTokens.count({
      model: `via-${format}`,
      input: 'x',
      previous_response_id: second.lastResponseId ?? null,
    });
    const { input_tokens: alone } = await openai(gateway).responses.inputTokens.count({
      model: `via-${format}`,
      input: 'x',
    });
    expect(longer).toBeGreaterThan(alone + 15);
  });

  test('keeps its session in a conversation at the gateway', async () => {
    const session = new OpenAIConversationsSession({ client: openai(gateway) });
    await runner.run(agent, 'Remember the word heron. Please call get_weather', { session });
    const result = await runner.run(agent, 'Please call get_time', { session });
    expect(result.finalOutput).toBe('get_time returned: noon in demo city');
    const items = await session.getItems();
    expect(items.map(kind)).toEqual([
      'user',
      'function_call',
      'function_call_result',
      'assistant',
      'user',
      'function_call',
      'function_call_result',
      'assistant',
    ]);
    expect(kind((await session.popItem()) as AgentInputItem)).toBe('assistant');
    expect(await session.getItems()).toHaveLength(7);
    await session.clearSession();
  });

  test('hands over to another agent', async () => {
    const other = new Agent({ name: 'clerk', instructions: 'Be brief.', model: `via-${format}` });
    const triage = Agent.create({ name: 'desk', model: `via-${format}`, handoffs: [other] });
    const result = await runner.run(triage, 'Please call transfer_to_clerk');
    expect(result.lastAgent?.name).toBe('clerk');
  });

  test('answers in a shape', async () => {
    const shaped = new Agent({ name: 'shaped', model: `via-${format}`, outputType: citySchema });
    const result = await runner.run(shaped, 'Tell me about a city');
    expect(result.finalOutput).toMatchObject({ city: 'demo city', climate: 'dry' });
  });

  test('runs over one socket', async () => {
    await withResponsesWebSocketSession(
      async (session) => {
        const result = await session.run(agent, 'Please call get_weather then get_time');
        expect(result.finalOutput).toBe('get_time returned: noon in demo city');
        const streamed = await session.run(agent, 'Please call get_weather', { stream: true });
        await streamed.completed;
        expect(streamed.finalOutput).toBe('get_weather returned: sun in demo city');
      },
      {
        providerOptions: { apiKey: gateway.key, baseURL: `${gateway.url}/v1` },
        runnerConfig: { tracingDisabled: true },
      },
    );
  });

  test('has its history compacted', async () => {
    const model = `gpt-${format}`;
    const session = new OpenAIResponsesCompactionSession({
      client: openai(gateway),
      model,
      shouldTriggerCompaction: ({ sessionItems }) => sessionItems.length >= 4,
    });
    const small = agent.clone({ model });
    await runner.run(small, 'Remember the word heron.', { session });
    await runner.run(small, 'And the word finch.', { session });
    const items = await session.getItems();
    expect(items.map(kind)).toContain('compaction');
    const result = await runner.run(small, 'Please call get_weather', { session });
    expect(result.finalOutput).toBe('get_weather returned: sun in demo city');
  });
});

function kind(item: AgentInputItem): string {
  return 'role' in item ? item.role : String(item.type);
}
