import { describe, expect, test } from 'vitest';
import type { GatewayEvent } from 'sluice';
import type { EncodedRequest } from 'sluice/channel-kit';
import { undoSpelling } from '../../../plugins/translation/undo-spelling.ts';

function undone(
  spelling: Omit<EncodedRequest, 'path' | 'body'>,
  events: readonly GatewayEvent[],
): GatewayEvent[] {
  const out: GatewayEvent[] = [];
  const emit = undoSpelling(spelling, (event) => out.push(event));
  for (const event of events) emit(event);
  return out;
}

const start = (block: number, name: string): GatewayEvent => ({
  type: 'tool-start',
  block,
  choice: 0,
  id: `c${block}`,
  name,
});
const delta = (block: number, input: string): GatewayEvent => ({
  type: 'tool-delta',
  block,
  choice: 0,
  input,
});
const end = (block: number): GatewayEvent => ({ type: 'tool-end', block, choice: 0 });
const finish = (reason: 'tool-calls' | 'stop' | 'length'): GatewayEvent => ({
  type: 'finish',
  choice: 0,
  reason,
  raw: 'tool_use',
  format: 'messages',
});

const names = { back: (name: string) => (name === 'a_b' ? 'a.b' : name) } as unknown as NonNullable<
  EncodedRequest['toolNames']
>;

describe('what the request had to spell otherwise', () => {
  test('comes back under the tool’s own name', () => {
    const out = undone({ toolNames: names }, [
      start(0, 'a_b'),
      delta(0, '{}'),
      end(0),
      start(1, 'other'),
      end(1),
    ]);
    expect(out.filter(({ type }) => type === 'tool-start')).toMatchObject([
      { name: 'a.b' },
      { name: 'other' },
    ]);
  });

  test('a free-text tool gets its text, not the JSON it was wrapped in, also when calls interleave', () => {
    const out = undone({ toolNames: names, customTools: ['a.b'] }, [
      start(0, 'a_b'),
      delta(0, '{"inp'),
      start(1, 'plain'),
      delta(1, '{"x":'),
      delta(0, 'ut":"say \\"hi\\"'),
      delta(1, '1}'),
      delta(0, '\\n😀"}'),
      end(1),
      end(0),
      finish('tool-calls'),
    ]);
    const inputs = (block: number) =>
      out
        .flatMap((event) => (event.type === 'tool-delta' && event.block === block ? [event.input] : []))
        .join('');
    expect(inputs(0)).toBe('say "hi"\n😀');
    expect(inputs(1)).toBe('{"x":1}');
    expect(out[0]).toMatchObject({ name: 'a.b', custom: true });
    expect(out.at(-1)).toMatchObject({ type: 'finish', reason: 'tool-calls' });
  });

  test('a model that did not keep to the wrapping is quoted as it wrote', () => {
    for (const input of ['just text', '{"input":5}', '[]', '']) {
      const out = undone({ customTools: ['t'] }, [start(0, 't'), delta(0, input), end(0)]);
      expect(out.find(({ type }) => type === 'tool-delta')).toMatchObject({ input });
    }
  });

  test('structured output through a forced tool reads as text that stopped', () => {
    const out = undone({ unwrapTool: 'answer' }, [
      start(3, 'answer'),
      delta(3, '{"city":'),
      delta(3, '"Ulm"}'),
      end(3),
      finish('tool-calls'),
    ]);
    expect(out).toEqual([
      { type: 'text-start', block: 3, choice: 0 },
      { type: 'text-delta', block: 3, choice: 0, text: '{"city":' },
      { type: 'text-delta', block: 3, choice: 0, text: '"Ulm"}' },
      { type: 'text-end', block: 3, choice: 0 },
      { type: 'finish', choice: 0, reason: 'stop' },
    ]);
  });

  test('structured output that grew too long keeps its reason, and real calls keep theirs', () => {
    expect(
      undone({ unwrapTool: 'answer' }, [start(0, 'answer'), end(0), finish('length')]).at(-1),
    ).toMatchObject({ reason: 'length' });
    expect(
      undone({ unwrapTool: 'answer' }, [start(0, 'search'), end(0), finish('tool-calls')]).at(-1),
    ).toMatchObject({
      reason: 'tool-calls',
    });
  });

  test('costs nothing when nothing was spelled otherwise', () => {
    const emit = (): void => {};
    expect(undoSpelling({}, emit)).toBe(emit);
  });
});
