import { describe, expect, test } from 'vitest';
import learnedRefusals from '../../plugins/learned-refusals/index.ts';
import { openAi, refusing, stage, text, unsupported, type Json } from './_refusals.ts';
import { readError, type Answer } from './_wire.ts';

/** Expects the provider's own refusal, and nothing learned of it. */
function expectRefusal(answer: Answer, sentence: string): void {
  expect(readError(openAi, answer)).toMatchObject({ status: 400 });
  expect(answer.text).toContain(sentence);
  expect(answer.headers).not.toHaveProperty('x-sluice-loss');
}

describe('a provider that lies', () => {
  test('by naming what was not sent is not asked again, and its refusal reaches the client', async () => {
    const { callModel, sent, gateway } = await stage(openAi, () => unsupported('top_k'));
    for (const requests of [1, 2]) {
      expectRefusal(await callModel({ seed: 1 }), "Unsupported parameter: 'top_k'");
      expect(sent()).toHaveLength(requests);
    }
    expect(gateway.lines.filter(({ plugin }) => plugin === 'learned-refusals')).toEqual([]);
  });

  test('by refusing again, whatever goes, is asked once more a call and a few times an hour', async () => {
    const judge = (body: Json): Json => unsupported(body.seed === undefined ? 'user' : 'seed');
    const plugins = [learnedRefusals({ perHour: 2, ttl: 60_000 })];
    const { callModel, sent, gateway } = await stage(openAi, judge, {}, { plugins });
    for (const requests of [2, 4, 5, 6]) {
      // The first refusal, not that of the second attempt.
      expectRefusal(await callModel({ seed: 1, user: 'me' }), "Unsupported parameter: 'seed'");
      expect(sent()).toHaveLength(requests);
    }
    expect(sent().map(({ seed }) => seed)).toEqual([1, undefined, 1, undefined, 1, 1]);
    expect(gateway.lines.filter(({ plugin }) => plugin === 'learned-refusals')).toEqual([]);
  });

  test('to many calls at once is asked no more often for them', async () => {
    const judge = (body: Json): Json => unsupported(body.seed === undefined ? 'user' : 'seed');
    const plugins = [learnedRefusals({ perHour: 2 })];
    const { callModel, sent } = await stage(openAi, judge, {}, { plugins });
    const answers = await Promise.all(Array.from({ length: 12 }, () => callModel({ seed: 1 })));
    for (const answer of answers) expectRefusal(answer, "Unsupported parameter: 'seed'");
    expect(sent().filter(({ seed }) => seed === 1)).toHaveLength(12);
    expect(sent().filter(({ seed }) => seed === undefined)).toHaveLength(2);
  });

  test('by refusing what it took before takes nothing else out of the call', async () => {
    const { callModel, sent } = await stage(openAi, (_, count) =>
      count === 2 ? undefined : unsupported('seed'),
    );
    expect(text(openAi, await callModel({ seed: 1 }))).toBe('fine');
    expectRefusal(await callModel({ seed: 1 }), "Unsupported parameter: 'seed'");
    expect(sent()).toHaveLength(3);
  });

  test('in its second answer, by failing, leaves the client its first', async () => {
    const { callModel, sent } = await stage(openAi, ({ seed }) =>
      seed === undefined ? [503, { error: { message: 'Try later.' } }] : unsupported('seed'),
    );
    expectRefusal(await callModel({ seed: 1 }), "Unsupported parameter: 'seed'");
    expect(sent()).toHaveLength(2);
    expectRefusal(await callModel({ seed: 1 }), "Unsupported parameter: 'seed'");
    expect(sent()[2]).toMatchObject({ seed: 1 });
  });

  const hello = [{ role: 'user', content: 'hi' }];
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
  test.each<readonly [string, Json]>([
    ['model', {}],
    ['messages', { messages: hello }],
    ['messages[0].content', { messages: hello }],
    ['tools', { tools: [tool] }],
    ['tools[0].function.strict', { tools: [tool] }],
    ['tool_choice', { tools: [tool], tool_choice: 'auto' }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['stream', {}],
    ['max_output_tokens', { max_output_tokens: 5 }],
    ['n', { n: 1 }],
    ['store', { store: false }],
    ['service_tier', { service_tier: 'flex' }],
    ['safe_prompt', { safe_prompt: true }],
    ['guardrails', { guardrails: {} }],
    ['provider', { provider: { data_collection: 'deny' } }],
  ])('about %s cannot have it taken out', async (member, more) => {
    const { callModel, sent } = await stage(openAi, () => unsupported(member));
    expectRefusal(await callModel(more), 'Unsupported parameter');
    expect(sent()).toHaveLength(1);
  });
});

test.each<readonly [string, Json]>([
  [
    'a value of which there are others',
    unsupported(
      'reasoning_effort',
      "Unsupported value: 'reasoning_effort' does not support 'low' with this model. Supported values are: 'medium', and 'high'.",
    ),
  ],
  [
    'a value out of range',
    unsupported('reasoning_effort', "Invalid value for 'reasoning_effort': it is not supported."),
  ],
  [
    'a name that moved',
    unsupported(
      'reasoning_effort',
      "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to 'reasoning.effort'.",
    ),
  ],
])('%s stays the client’s to mend', async (_, refusal) => {
  const traits = { '*': { reasoning: 'effort' } } as const;
  const { callModel, sent } = await stage(openAi, refusing({ reasoning_effort: refusal }), { traits });
  const answer = await callModel({ reasoning_effort: 'low' });
  expect(readError(openAi, answer).status).toBe(400);
  expect(sent()).toHaveLength(1);
});

test('a refusal that is no 400 or 422 teaches nothing', async () => {
  const { callModel, sent } = await stage(openAi, () => [403, unsupported('seed')]);
  expect((await callModel({ seed: 1 })).status).not.toBe(200);
  expect(sent().every(({ seed }) => seed === 1)).toBe(true);
});
