import assert from 'node:assert/strict';
import { at, streamedCalls } from '../../../conformance/trial.ts';
import { reply, toolCall } from '../script.ts';
import { answered, citiesOf, framesOf } from './answers.ts';
import { going } from './provider-actions.ts';
import type { MakeCase } from './scene.ts';
import type { ChannelCase, Lack } from './tested.ts';

/** Returns the cases about tools: calls, results and streams. */
export function toolCases(one: MakeCase, lacks: readonly Lack[]): readonly ChannelCase[] {
  const weather = {
    type: 'function',
    function: {
      name: 'weather',
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  };
  const cities = lacks.includes('parallel tools') ? ['Oslo'] : ['Oslo', 'Rome'];
  const calls = reply(...cities.map((city, index) => toolCall('weather', { city }, `call_${index}`)));
  const wanted = cities.map((city) => ({ name: 'weather', city }));
  return [
    one('calls tools', { says: calls }, async ({ request, received }) => {
      const body = await answered(await request({ tools: [weather] }));
      assert.deepEqual(citiesOf(at(body, 'choices', 0, 'message', 'tool_calls')), wanted);
      assert.equal(at(body, 'choices', 0, 'finish_reason'), 'tool_calls');
      const [tool] = received().request.tools;
      assert.ok(tool?.type === 'function' && tool.name === 'weather', 'the provider got no tool');
      assert.deepEqual(at(tool.schema ?? null, 'required'), ['city']);
    }),
    one('takes what tools have given', { says: reply('It rains.') }, async ({ request, received }) => {
      const asking = cities.map((city, index) => ({
        id: `call_${index}`,
        type: 'function',
        function: { name: 'weather', arguments: JSON.stringify({ city }) },
      }));
      const given = cities.map((city, index) => ({
        role: 'tool',
        tool_call_id: `call_${index}`,
        content: `Rain in ${city}`,
      }));
      const messages = [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', tool_calls: asking },
        ...given,
      ];
      await answered(await request({ tools: [weather], messages }));
      const blocks = received().request.messages.flatMap(({ content }) => content);
      const results = blocks.filter((block) => block.type === 'tool-result');
      assert.deepEqual(
        results.map(({ content }) => content.map((block) => ('text' in block ? block.text : '')).join('')),
        cities.map((city) => `Rain in ${city}`),
      );
    }),
    ...(lacks.includes('streams')
      ? []
      : [
          one('streams the calls of tools', { streams: calls, step: going }, async ({ request }) => {
            const read = await (await request({ tools: [weather], stream: true })).text();
            assert.deepEqual(citiesOf(streamedCalls(framesOf(read))), wanted);
          }),
        ]),
  ];
}
