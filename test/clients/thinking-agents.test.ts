import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { openai, Recorder } from './sdks.ts';

/** Every channel refuses a tool loop whose reasoning does not come back, where its format has a way to tell. */
const channels = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;
/** The demo counts the calls of an items' turn one by one. */
const prompts = {
  'chat-completions': 'Please call get_weather and get_time then call book_trip',
  messages: 'Please call get_weather and get_time then call book_trip',
  'generate-content': 'Please call get_weather and get_time then call book_trip',
  responses: 'Please call get_time then call book_trip',
} as const;

let gateway: TestGateway;

beforeAll(async () => {
  setTracingDisabled(true);
  gateway = await startGateway({
    channels: channels.map((format) =>
      demo({ id: format, speaks: [format], strict: true, models: { [`via-${format}`]: 'demo-thinking' } }),
    ),
  });
});

afterAll(() => gateway.close());

const citySchema = z.object({ city: z.string() });
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const named = { get_weather: '21 degrees', get_time: 'noon', book_trip: 'booked' };

/** Returns the reported losses, without those of the tools' own fields in another format. */
function losses({ exchanges }: Recorder): readonly string[] {
  const paths = exchanges.flatMap(({ headers }) => headers.get('x-sluice-loss')?.split(', ') ?? []);
  return paths.filter((path) => !path.startsWith('tools['));
}

/** True when the client sent something of the model's reasoning back. */
function sentReasoning({ exchanges }: Recorder): boolean {
  return exchanges.some(({ requestBody }) => /"reasoning(_content|_details)?":/.test(requestBody));
}

describe.each(channels)('an agent on a %s channel', (format) => {
  const prompt = prompts[format];
  test.each([false, true])('of the Agents SDK works through its tools, streamed: %s', async (stream) => {
    const recorder = new Recorder();
    const agent = new Agent({
      name: 'traveller',
      instructions: 'Use your tools.',
      model: new OpenAIChatCompletionsModel(openai(gateway, { recorder }), `via-${format}`),
      modelSettings: { reasoning: { effort: 'high' } },
      tools: Object.entries(named).map(([name, result]) =>
        tool({ name, description: name, parameters: citySchema, execute: () => result }),
      ),
    });
    const result = stream ? await run(agent, prompt, { stream: true }) : await run(agent, prompt);
    if ('completed' in result) await result.completed;
    expect(result.finalOutput).toBe('book_trip returned: booked');
    expect(recorder.exchanges).toHaveLength(3);
    expect(sentReasoning(recorder)).toBe(false);
    expect(losses(recorder)).toEqual([]);
  });

  test.each([false, true])('of the openai SDK finishes its tool runner, streamed: %s', async (stream) => {
    const recorder = new Recorder();
    const body = {
      model: `via-${format}`,
      reasoning_effort: 'high' as const,
      messages: [{ role: 'user' as const, content: prompt }],
      tools: Object.entries(named).map(([name, result]) => ({
        type: 'function' as const,
        function: { name, description: name, parameters: { ...schema }, function: () => result },
      })),
    };
    const { completions } = openai(gateway, { recorder }).chat;
    const runner = stream ? completions.runTools({ ...body, stream: true }) : completions.runTools(body);
    expect(await runner.finalContent()).toBe('book_trip returned: booked');
    expect(recorder.exchanges).toHaveLength(3);
    expect(losses(recorder)).toEqual([]);
  });
});
