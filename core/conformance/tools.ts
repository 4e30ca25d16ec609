/** Trials of tool calls and their results. */
import type { JsonObject, JsonValue } from '../model/json.ts';
import { chats } from './chat.ts';
import { at, callsOf, holds, streamedCalls, type Answer, type Asking, type Trial } from './trial.ts';

const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather in one city, now',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', description: 'its English name' } },
      required: ['city'],
    },
  },
};

function trial(name: string, run: (asking: Asking) => Promise<void>, lack: Trial['lack'] = 'tools'): Trial {
  return { name, lack, operation: 'chat', requests: 1, input: 300, output: 2000, run };
}

function requestWithTool(
  { request: send, model }: Asking,
  content: string,
  more: JsonObject = {},
): Promise<Answer> {
  const messages = [{ role: 'user', content }];
  return send(chats, { model, max_tokens: 2000, messages, tools: [weather], ...more });
}

/** Returns the cities in the calls for the weather. */
function citiesOf(calls: JsonValue | undefined): readonly string[] {
  holds(Array.isArray(calls) && calls.length > 0, 'no tool is called');
  return callsOf(calls as readonly JsonValue[]).map(({ name, input }) => {
    holds(name === 'weather', `a tool is called that there is not: ${name}`);
    holds(typeof input['city'] === 'string', 'the tool is called without what it requires');
    return input['city'];
  });
}

const messageCalls = ({ json }: Answer): JsonValue | undefined =>
  at(json, 'choices', 0, 'message', 'tool_calls');

function asksFor(cities: readonly string[], wanted: readonly string[]): void {
  for (const city of wanted)
    holds(
      cities.some((one) => one.includes(city)),
      `the weather of ${city} was not asked for, but of: ${cities.join(', ')}`,
    );
}

/** Trials of chat models with tools. */
export const toolTrials: readonly Trial[] = [
  trial('tools', async (asking) => {
    const answer = await requestWithTool(asking, 'What is the weather in Oslo?');
    asksFor(citiesOf(messageCalls(answer)), ['Oslo']);
    const reason = at(answer.json, 'choices', 0, 'finish_reason');
    holds(reason === 'tool_calls', `the answer ends with ${String(reason)}`);
  }),
  trial(
    'parallel tools',
    async (asking) => {
      const answer = await requestWithTool(
        asking,
        'What is the weather in Oslo, and in Rome? Ask for both at once.',
      );
      asksFor(citiesOf(messageCalls(answer)), ['Oslo', 'Rome']);
    },
    'parallel tools',
  ),
  trial('tools in a stream', async (asking) => {
    const { frames } = await requestWithTool(asking, 'What is the weather in Oslo?', { stream: true });
    asksFor(citiesOf(streamedCalls(frames) as JsonValue[]), ['Oslo']);
  }),
  trial('a tool that must be called', async (asking) => {
    const tool_choice = { type: 'function', function: { name: 'weather' } };
    const answer = await requestWithTool(asking, 'Good morning from Oslo!', { tool_choice });
    citiesOf(messageCalls(answer));
  }),
  trial('results of tools', async (asking) => {
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'weather', arguments: '{"city":"Oslo"}' },
    };
    const messages = [
      { role: 'user', content: 'What is the weather in Oslo?' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'Hail, 4 degrees' },
    ];
    const { json } = await requestWithTool(asking, '', { messages });
    const text = String(at(json, 'choices', 0, 'message', 'content') ?? '');
    holds(/hail/i.test(text), `the answer does not tell what the tool has given: ${text.slice(0, 80)}`);
  }),
];
