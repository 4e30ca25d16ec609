import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import stepfun from '../../channels/stepfun.ts';
import { Provider, sse } from './_provider.ts';

let provider: Provider;
beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [stepfun({ key: 'k', baseUrl: `${url}/v1`, models: ['step-3.7-flash'] })],
  }));
});
afterAll(() => provider.close());

/** Chunks as https://platform.stepfun.com/docs/zh/api-reference/chat/chat-completion-create shows them: no nulls, and usage in each. */
const chunk = (delta: object, finish: string, output: number): object => ({
  id: 'c-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'step-3.7-flash',
  choices: [{ index: 0, delta: { role: '', content: '', ...delta }, finish_reason: finish }],
  usage: { prompt_tokens: 83, completion_tokens: output, total_tokens: 83 + output },
});
const thought = (text: string): object => ({ reasoning: text, reasoning_content: text });
const reply = sse(
  [
    chunk(thought('Think'), '', 1),
    chunk(thought('ing.'), '', 2),
    chunk({ content: 'Hel' }, '', 3),
    chunk({ content: 'lo.' }, '', 4),
    chunk({}, 'stop', 5),
  ],
  'data: [DONE]\n\n',
);
const messages = [{ role: 'user' as const, content: 'Hi.' }];

describe('a stream of StepFun', () => {
  test('ends once for a client of chat completions, with its reasoning under the usual name', async () => {
    provider.says(() => reply);
    const { url, key } = provider.gateway;
    const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model: 'step-3.7-flash',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let [text, reasoning] = ['', ''];
    const ends: unknown[] = [];
    let usage: unknown;
    for await (const { choices, usage: reportedUsage } of stream) {
      usage = reportedUsage ?? usage;
      for (const { delta, finish_reason } of choices) {
        text += delta.content ?? '';
        reasoning += (delta as { reasoning_content?: string }).reasoning_content ?? '';
        if (finish_reason !== null) ends.push(finish_reason);
      }
    }
    expect({ text, reasoning, ends }).toEqual({ text: 'Hello.', reasoning: 'Thinking.', ends: ['stop'] });
    expect(usage).toMatchObject({ prompt_tokens: 83, completion_tokens: 5 });
  });

  test('is told once to a client of the messages format', async () => {
    provider.says(() => reply);
    const answer = await provider.post('/v1/messages', {
      model: 'step-3.7-flash',
      max_tokens: 99,
      messages,
      stream: true,
    });
    const frames = (await answer.text())
      .split('\n')
      .flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
    const events = frames.map(
      (frame) => JSON.parse(frame) as { type: string; delta?: Record<string, string>; usage?: object },
    );
    const joinedDeltas = (name: string): string => events.map(({ delta }) => delta?.[name] ?? '').join('');
    expect([joinedDeltas('thinking'), joinedDeltas('text'), joinedDeltas('stop_reason')]).toEqual([
      'Thinking.',
      'Hello.',
      'end_turn',
    ]);
    expect(events.findLast(({ type }) => type === 'message_delta')?.usage).toMatchObject({
      output_tokens: 5,
    });
  });
});
