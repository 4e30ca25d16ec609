import { describe, expect, test } from 'vitest';
import type { GatewayEvent } from '../../../core/sdk/index.ts';
import { ReplyCapture } from '../../../plugins/usage-log/capture.ts';
import { redactor } from '../../../plugins/usage-log/redact.ts';

const rules = redactor([String.raw`/secret-[a-z]+-end/`]);

/** Returns the captured part of a response, limited to 40 characters. */
function kept(...events: readonly GatewayEvent[]): string | undefined {
  const capture = new ReplyCapture(40);
  for (const event of events) capture.event(event);
  return capture.redacted(rules);
}

const bytes = (text: string): GatewayEvent => ({ type: 'bytes', bytes: Buffer.from(text) });
const text = (block: number, piece: string): GatewayEvent => ({
  type: 'text-delta',
  choice: 0,
  block,
  text: piece,
});
/** Words that are no secret of another test of this process. */
const words = (length: number): string =>
  'lorem ipsum dolor '.repeat(Math.ceil(length / 18)).slice(0, length);
const long = `secret-${'a'.repeat(3_000)}-end`;

describe('a response that is longer than what is kept of it', () => {
  test('has no beginning of what a rule names, wherever it is cut', () => {
    for (let before = 0; before < 45; before += 1) {
      const all = `${words(before)}${long} and more ${words(10_000)}`;
      for (const found of [
        kept(bytes(all)),
        kept(text(0, all)),
        kept(text(0, 'a'), text(1, all), text(0, 'b')),
      ]) {
        expect(found).not.toContain('secret');
        expect(found?.length).toBeLessThanOrEqual(41);
      }
    }
  });

  test('is cut where it is too long even where a rule makes it much shorter', () => {
    const many = Array.from({ length: 3 }, () => long).join(' ');
    expect(kept(bytes(`${many} ${long}`))).not.toContain('secret');
    expect(kept(text(0, many), text(0, ` ${long}`))).not.toContain('secret');
  });

  test('ends with its first characters and a mark', () => {
    expect(kept(bytes(words(10_000)))).toBe(`${words(40)}…`);
    expect(kept(bytes(words(50)))).toBe(`${words(40)}…`);
    expect(kept(text(0, words(10_000)))).toBe(`[{"type":"text","text":"${words(16)}…`);
  });

  test('is kept whole where it has room', () => {
    expect(kept(bytes('hello'))).toBe('hello');
    expect(kept(text(0, 'hel'), text(0, 'lo'))).toBe('[{"type":"text","text":"hello"}]');
  });
});
