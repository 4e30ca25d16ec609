import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Codec } from '../../../core/sdk/format.ts';
import { Listener } from '../../../plugins/reasoning-vault/listener.ts';
import { Passing } from '../../../plugins/reasoning-vault/passing.ts';
import { anyCharacter } from '../../support/characters.ts';

/** Every proof that is found in a stream, or a whole reply, that passes. */
function found(format: string, text: string, whole = false): readonly string[] {
  const listener = new Listener({ bare: false, limit: 1e6 });
  const codec = { format, marks: { terminal: [] } } as unknown as Codec;
  const passing = new Passing({ codec, traits: {}, bare: false, limit: 1e6 }, listener);
  if (whole) {
    for (let at = 0; at < text.length; at += 7) passing.bytes(Buffer.from(text.slice(at, at + 7)));
    passing.end();
  } else passing.frames(Buffer.from(text));
  return (listener.take()?.proofs ?? []).map(({ kind, value }) => `${kind} ${value}`);
}

const frame = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

describe('proofs in a reply that passes through', () => {
  test.each([
    [
      'messages',
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'S+/=' } },
      'signature S+/=',
    ],
    [
      'messages',
      { type: 'content_block_start', index: 0, content_block: { type: 'redacted_thinking', data: 'R+/=' } },
      'encrypted R+/=',
    ],
    [
      'generate-content',
      { candidates: [{ content: { parts: [{ functionCall: {}, thoughtSignature: 'T+/=' }] } }] },
      'signature T+/=',
    ],
    [
      'responses',
      { type: 'response.output_item.done', item: { type: 'reasoning', encrypted_content: 'E+/=' } },
      'encrypted E+/=',
    ],
    [
      'converse',
      { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'C+/=' } } },
      'signature C+/=',
    ],
    [
      'converse',
      { contentBlockIndex: 0, delta: { reasoningContent: { redactedContent: 'D+/=' } } },
      'encrypted D+/=',
    ],
  ])('are found (%s)', (format, data, proof) => {
    expect(found(format, frame(data))).toEqual([proof]);
    expect(found(format, JSON.stringify(data, undefined, 2), true)).toEqual([proof]);
  });

  test('are read as JSON spells them', () => {
    expect(found('messages', 'data: {"delta":{"signature" : "a\\/b\\u003d\\\\"}}\n\n')).toEqual([
      'signature a/b=\\',
    ]);
  });

  test('are not what a text says of them', () => {
    const text = 'Write {"signature":"abc"} or \\"signature\\": "abc".';
    expect(found('messages', frame({ delta: { type: 'text_delta', text } }))).toEqual([]);
  });

  test('that nobody made are none', () => {
    expect(found('messages', frame({ content_block: { type: 'thinking', signature: '' } }))).toEqual([]);
    expect(found('responses', frame({ item: { encrypted_content: null } }))).toEqual([]);
  });

  test('cost no reply: whatever else comes is let pass', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (rest) => {
        expect(() => found('messages', `data: {"signature":"${rest}`)).not.toThrow();
        expect(() => found('chat-completions', `data: {"reasoning_details":${rest}\n\n`)).not.toThrow();
      }),
    );
  });

  test('of many megabytes are no matter', () => {
    const value = 'A'.repeat(900_000);
    expect(found('generate-content', frame({ thoughtSignature: value }))).toEqual([`signature ${value}`]);
  });
});
