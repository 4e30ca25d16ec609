import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatRequest, Message } from '../../../core/sdk/index.ts';
import { reply, testPlugins, text, thought, toolCall } from '../../../core/sdk/testing/index.ts';
import { inputMessages, systemInstructions, toolDefinitions } from '../../../plugins/telemetry/messages.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
import { createRedactor } from '../../../plugins/telemetry/redact.ts';
import { startCollector } from './_collector.ts';
import type { SeenSpan } from './_otlp.ts';

type Options = NonNullable<Parameters<typeof telemetry>[0]>;

/** The span of one call, with everything else that was exported. */
async function spanOf(
  options: Options,
  call: Parameters<Awaited<ReturnType<typeof testPlugins>>['run']>[0],
  answer: Parameters<Awaited<ReturnType<typeof testPlugins>>['run']>[1] = {},
): Promise<{ readonly span: SeenSpan; readonly all: string }> {
  const collector = await startCollector();
  const tested = await testPlugins(telemetry({ endpoint: collector.url, ...options }));
  await tested.run(call, answer);
  await tested.close();
  const [span] = collector.spans;
  if (span === undefined) throw new Error('There is no span.');
  return { span, all: JSON.stringify(collector.got) };
}

const parsed = ({ attributes }: SeenSpan, name: string): unknown => JSON.parse(String(attributes[name]));

const chatRequest = {
  system: 'You are a secret agent.',
  messages: ['What is the password of bob@example.com?'],
  settings: { stop: ['END-OF-SECRET'], temperature: 0, user: 'user-7' },
  tools: [{ type: 'function', name: 'lookup', description: 'Looks secrets up' }],
} as const;
const answer = {
  reply: reply(thought('Hm, a secret.'), text('The pass', 'word is sk-abcdefghijklmnop1234.')),
};

describe('what is told of requests and responses', () => {
  test('is no word of either by default', async () => {
    const { span, all } = await spanOf({}, chatRequest, answer);
    for (const word of ['secret', 'SECRET', 'bob@', 'password', 'user-7', 'lookup', '192.0.2.7'])
      expect(all).not.toContain(word);
    expect(span.attributes).toMatchObject({ 'gen_ai.request.temperature': 0 });
  });

  test('is who asked, and how much, with metadata', async () => {
    const { span, all } = await spanOf({ content: 'metadata' }, chatRequest, answer);
    expect(span.attributes).toMatchObject({
      'user.id': 'user-7',
      'client.address': '192.0.2.7',
      'gen_ai.request.stop_sequences': ['END-OF-SECRET'],
      'sluice.request.messages': 1,
      'sluice.request.tools': 1,
    });
    for (const word of ['bob@', 'password', 'lookup', 'agent']) expect(all).not.toContain(word);
  });

  test('is everything in full, without what is redacted and what looks like a credential', async () => {
    const redact = ['/[\\w.]+@[\\w.]+/', '/SECRET/i'];
    const { span, all } = await spanOf({ content: 'full', redact }, chatRequest, answer);
    expect(parsed(span, 'gen_ai.input.messages')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'What is the password of …?' }] },
    ]);
    expect(parsed(span, 'gen_ai.system_instructions')).toEqual([
      { type: 'text', content: 'You are a … agent.' },
    ]);
    expect(parsed(span, 'gen_ai.tool.definitions')).toMatchObject([
      { type: 'function', name: 'lookup', description: 'Looks …s up' },
    ]);
    expect(parsed(span, 'gen_ai.output.messages')).toMatchObject([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', content: 'Hm, a ….' },
          { type: 'text', content: expect.stringMatching(/^The password is sk-…/) },
        ],
        finish_reason: 'stop',
      },
    ]);
    expect(all).not.toContain('abcdefghijklmnop1234');
    // Log records have no texts.
    expect(all.match(/gen_ai\.input\.messages/g)).toHaveLength(1);
  });

  test('has calls of tools and their results in the shape of the conventions, and media by name', async () => {
    const body = {
      model: 'm',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'https://pictures.example/cat.png' } },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${'QUJD'.repeat(5_000)}` } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":"cat"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'a cat' },
      ],
    };
    const { span, all } = await spanOf(
      { content: 'full' },
      { body },
      { reply: reply(toolCall('look', { at: 'dog' })) },
    );
    expect(parsed(span, 'gen_ai.input.messages')).toEqual([
      {
        role: 'user',
        parts: [
          { type: 'text', content: 'What is this?' },
          { type: 'uri', modality: 'image', uri: 'https://pictures.example/cat.png' },
          { type: 'image', mime_type: 'image/png', base64_length: 20_000 },
        ],
      },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'look', arguments: { at: 'cat' } }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'a cat' }] },
    ]);
    expect(parsed(span, 'gen_ai.output.messages')).toMatchObject([
      { parts: [{ type: 'tool_call', name: 'look', arguments: { at: 'dog' } }], finish_reason: 'tool-calls' },
    ]);
    expect(all).not.toContain('QUJDQUJD');
  });

  test('of a long conversation is its end, and of a long response its beginning', async () => {
    const messages = Array.from({ length: 200 }, (_, index) => `message ${index} ${'word '.repeat(20)}`);
    const { span } = await spanOf(
      { content: 'full', maxBytes: 2_000 },
      { messages, stream: true },
      { reply: reply(text('first ', 'x'.repeat(50_000), ' last')) },
    );
    const input = String(span.attributes['gen_ai.input.messages']);
    const output = String(span.attributes['gen_ai.output.messages']);
    expect(Buffer.byteLength(input)).toBeLessThanOrEqual(2_000);
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(2_000);
    expect(input).toContain('message 199');
    expect(input).toMatch(/\(\d+ earlier messages are left out\)/);
    expect(output).toContain('first x');
    expect(JSON.parse(output)).toHaveLength(1);
  });
});

describe('an attribute with texts', () => {
  const block = fc.oneof(
    fc.record({ type: fc.constant('text' as const), text: fc.string({ maxLength: 600, unit: 'grapheme' }) }),
    fc.record({
      type: fc.constant('tool-call' as const),
      id: fc.string({ maxLength: 20 }),
      name: fc.string({ maxLength: 20 }),
      input: fc.oneof(fc.json(), fc.string()),
    }),
    fc.record({
      type: fc.constant('tool-result' as const),
      id: fc.string({ maxLength: 20 }),
      content: fc.array(fc.record({ type: fc.constant('text' as const), text: fc.string() }), {
        maxLength: 3,
      }),
    }),
  );
  const message: fc.Arbitrary<Message> = fc.record({
    role: fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const),
    content: fc.array(block, { maxLength: 30 }),
  });
  const request = fc.record({
    system: fc.array(message, { maxLength: 3 }),
    messages: fc.array(message, { maxLength: 20 }),
    tools: fc.array(
      fc.record({ type: fc.constant('function' as const), name: fc.string(), description: fc.string() }),
      { maxLength: 20 },
    ),
  });

  test('is JSON of at most so many bytes, whatever a client sends', () => {
    fc.assert(
      fc.property(request, fc.integer({ min: 256, max: 4_096 }), (given, maxBytes) => {
        const writing = { redact: createRedactor(['/a+/', '/\\d/']), maxBytes };
        const chat = given as unknown as ChatRequest;
        for (const written of [
          inputMessages(chat, writing),
          systemInstructions(chat, writing),
          toolDefinitions(chat, writing),
        ]) {
          if (written === undefined) continue;
          expect(Buffer.byteLength(written)).toBeLessThanOrEqual(maxBytes);
          expect(JSON.parse(written)).toBeInstanceOf(Array);
        }
      }),
      { seed: 20261126 },
    );
  });

  test('shows no part of what is redacted, wherever its limit cuts', () => {
    fc.assert(
      fc.property(fc.nat({ max: 12_000 }), fc.integer({ min: 1, max: 5_000 }), (before, limit) => {
        const redact = createRedactor(['/<<.*?>>/s']);
        const shown = redact(`${'x'.repeat(before)}<<the secret of Bob>>${'y'.repeat(3_000)}`, limit);
        expect(shown).not.toMatch(/<<|secret|Bob/);
        expect(shown.length).toBeLessThanOrEqual(limit + 1);
      }),
      { seed: 20261126 },
    );
  });
});
