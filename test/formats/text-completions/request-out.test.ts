import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { codec, failureOf, foreign, target } from './support.ts';

const user = { role: 'user', content: [{ type: 'text', text: 'Hi' }], at: 'messages[0]' } as const;
const picture = {
  type: 'image',
  source: { kind: 'url', url: 'https://example.com/a.png' },
  at: 'messages[0].content[0]',
} as const;

describe('a request of another format', () => {
  it('becomes a prompt when it is one user turn of text', () => {
    const { body, path } = codec.encodeRequest(foreign({ settings: { maxOutput: 9, choices: 2 } }), target());
    expect(path).toBe('/completions');
    expect(body).toEqual({ model: 'm', prompt: 'Hi', max_tokens: 9, n: 2 });
  });

  it('keeps its paragraphs', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ] as const;
    expect(
      codec.encodeRequest(foreign({ messages: [{ role: 'user', content }] }), target()).body.prompt,
    ).toBe('a\n\nb');
  });

  it('asks for usage in its streams', () => {
    expect(codec.encodeRequest(foreign({ stream: true }), target({ stream: true })).body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it.each<[string, Partial<ChatRequest>, string]>([
    ['instructions', { system: [{ role: 'system', content: user.content, at: 'system' }] }, 'system'],
    [
      'earlier turns',
      { messages: [user, { role: 'assistant', content: user.content, at: 'messages[1]' }, user] },
      'messages[0]',
    ],
    ['a picture', { messages: [{ ...user, content: [picture] }] }, 'messages[0].content[0]'],
    ['a tool', { tools: [{ type: 'function', name: 'f', at: 'tools[0]' }] }, 'tools[0]'],
    ['an answer to go on with', { messages: [user, { ...user, role: 'assistant' }] }, 'messages[0]'],
    ['no turn at all', { messages: [] }, 'messages'],
  ])('with %s is 400, naming the place', (_what, more, param) => {
    expect(failureOf(() => codec.encodeRequest(foreign(more), target()))).toMatchObject({
      status: 400,
      code: 'unsupported_content',
      param,
    });
  });

  it('loses all that and says so where the operator chose to drop', () => {
    const where = target({ unsupported: 'drop' });
    const request = foreign({
      system: [{ role: 'system', content: user.content, at: 'system' }],
      messages: [
        { ...user, role: 'assistant' },
        { ...user, content: [picture, ...user.content] },
      ],
      tools: [{ type: 'function', name: 'f', at: 'tools[0]' }],
    });
    expect(codec.encodeRequest(request, where).body).toEqual({ model: 'm', prompt: 'Hi' });
    expect(where.losses).toEqual([
      ['system', 'content'],
      ['messages[0]', 'content'],
      ['messages[0].content[0]', 'content'],
      ['tools[0]', 'content'],
    ]);
  });

  it('loses settings that have no field, but none that this format fulfils anyway', () => {
    const where = target();
    codec.encodeRequest(
      foreign({
        settings: {
          topK: 5,
          reasoning: { effort: 'none' },
          responseFormat: { type: 'text' },
          modalities: ['text'],
          stop: ['1', '2', '3', '4', '5'],
        },
        extra: { messages: { container: 'c' } },
      }),
      where,
    );
    expect(where.losses.map(([path]) => path).toSorted()).toEqual([
      'container',
      'settings.stop',
      'settings.topK',
    ]);
    const more = target();
    const settings = { reasoning: { effort: 'high' }, responseFormat: { type: 'json' } } as const;
    codec.encodeRequest(foreign({ settings }), more);
    expect(more.losses.map(([path]) => path).toSorted()).toEqual([
      'settings.reasoning',
      'settings.responseFormat',
    ]);
  });
});

it('every request comes back as it was from a channel of its own format', () => {
  const tokens = fc.array(fc.nat(), { minLength: 1, maxLength: 3 });
  const body = fc.record(
    {
      model: fc.constant('m'),
      prompt: fc.oneof(
        fc.string(),
        tokens,
        fc
          .array(fc.oneof(fc.string(), tokens), { minLength: 1, maxLength: 3 })
          .filter(([first]) => typeof first !== 'number'),
      ),
      max_tokens: fc.nat(),
      temperature: fc.integer({ min: 0, max: 2 }),
      n: fc.integer({ min: 1, max: 3 }),
      stop: fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 4 })),
      suffix: fc.string(),
      echo: fc.boolean(),
      logprobs: fc.integer({ min: 0, max: 5 }),
      best_of: fc.integer({ min: 3, max: 20 }),
      logit_bias: fc.constant({ 5: -100 }),
      stream: fc.constant(false),
      stream_options: fc.constant({ include_obfuscation: false }),
      $odd: fc.string(),
    },
    { requiredKeys: ['model', 'prompt'] },
  );
  fc.assert(
    fc.property(body, (written) => {
      const where = target();
      const request = codec.validate(written as unknown as JsonObject, {});
      expect(codec.encodeRequest(request, where).body).toEqual(written);
      expect(where.losses).toEqual([]);
    }),
  );
});

describe('the edits that keep a pass-through one', () => {
  it('change the model and the limit, and nothing else', () => {
    const body = { model: 'a', prompt: [1], x: null, max_tokens: 3 };
    expect(codec.patch(body, { model: 'b', settings: { maxOutput: 7 } }, {})).toEqual({
      ...body,
      model: 'b',
      max_tokens: 7,
    });
    expect(codec.patch(body, {}, {})).toEqual(body);
  });

  it('ask for usage in streams only, and only when the client does not', () => {
    const plain = { model: 'm', prompt: 'x' };
    expect(codec.askUsage?.(plain)).toBeUndefined();
    expect(codec.askUsage?.({ ...plain, stream: true })).toEqual({
      stream_options: { include_usage: true },
    });
    const body = { ...plain, stream: true, stream_options: { include_usage: true } };
    expect(codec.askUsage?.(body)).toBeUndefined();
  });
});
