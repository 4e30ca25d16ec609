import { describe, expect, test } from 'vitest';
import { chatOf, type Call, type CallEdits, type Target } from '../../../core/sdk/call.ts';
import type { SystemPrompt } from '../../../core/sdk/channel.ts';
import type { Message } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { addressed } from '../../../core/routing/target.ts';
import { withSystemPrompt } from '../../../core/routing/system-prompt.ts';
import { testCall } from '../../support/call.ts';

const systemMessage = (...texts: readonly string[]): Message => ({
  role: 'system',
  content: texts.map((text) => ({ type: 'text', text })),
});
const textsOf = (system: readonly Message[]): readonly (readonly string[])[] =>
  system.map(({ content }) => content.map((block) => (block.type === 'text' ? block.text : block.type)));

const target = (systemPrompt?: SystemPrompt): Target =>
  ({
    channel: { id: 'c', ...(systemPrompt === undefined ? {} : { systemPrompt }) },
    key: { id: '', index: 0 },
    model: 'm',
    traits: {},
  }) as unknown as Target;

const prompt: SystemPrompt = { text: 'P', place: 'before' };

/** A body that is a chat with these instructions. */
const bodyWith = (...system: readonly Message[]): JsonObject =>
  ({ model: 'm', stream: false, settings: {}, system }) as unknown as JsonObject;

/** A call with the instruction A, on its way to a channel with the prompt. */
function call(edits: CallEdits = {}, own: SystemPrompt | undefined = prompt): Call {
  const { call: plain } = testCall({ model: 'm' });
  return addressed(plain.with({ body: bodyWith(systemMessage('A')), ...edits }), target(own));
}
const systemOf = (one: Call): readonly (readonly string[])[] => textsOf(chatOf(one).system);

describe('instructions of the operator', () => {
  test.each<[SystemPrompt['place'], readonly Message[], readonly (readonly string[])[]]>([
    ['before', [], [['P']]],
    ['after', [], [['P']]],
    ['instead', [systemMessage('A'), systemMessage('B')], [['P']]],
    ['before', [systemMessage('A'), systemMessage('B')], [['P\n\nA'], ['B']]],
    ['after', [systemMessage('A'), systemMessage('B')], [['A'], ['B\n\nP']]],
    ['before', [systemMessage('A', 'B')], [['P', 'A', 'B']]],
    ['after', [systemMessage('A', 'B')], [['A', 'B', 'P']]],
  ])('stand %s those of the client: %j', (place, system, whole) => {
    expect(textsOf(withSystemPrompt(system, { text: 'P', place }))).toEqual(whole);
  });

  test('turn pass-through off, and only where there are any', () => {
    expect(call().patchable).toBe(false);
    expect(addressed(testCall({ model: 'm' }).call, target()).patchable).toBe(true);
    expect(systemOf(call())).toEqual([['P\n\nA']]);
  });

  test('are for chats alone', () => {
    const embed = addressed(testCall({ operation: 'embed', model: 'm' }).call, target(prompt));
    expect(embed.patchable).toBe(true);
  });

  test('are added to whatever becomes of the request on its way', () => {
    expect(systemOf(call({ system: [systemMessage('B')] }))).toEqual([['P\n\nB']]);
    const body = bodyWith(systemMessage('C'));
    expect(systemOf(call({ body }))).toEqual([['P\n\nC']]);
    expect(systemOf(call().with({ body }))).toEqual([['P\n\nC']]);
  });

  test('are not added twice by who has read them', () => {
    const before = call();
    const system = [...chatOf(before).system, systemMessage('D')];
    expect(systemOf(before.with({ system }))).toEqual([['P\n\nA'], ['D']]);
  });

  test('are not part of what a plugin asks for a purpose of its own', () => {
    const { codec } = call();
    const asking = call().with({ codec, body: bodyWith(systemMessage('Summarise.')) });
    expect(systemOf(asking)).toEqual([['Summarise.']]);
  });
});
