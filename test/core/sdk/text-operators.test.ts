import * as fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { mapText, transformText } from '../../../core/sdk/text-operators.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { tries } from '../../support/tries.ts';

const position = { block: 0, choice: 0 };

function textOf(events: readonly GatewayEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('');
}

function streamOf(pieces: readonly string[]): GatewayEvent[] {
  return [
    { type: 'text-start', ...position },
    ...pieces.map((text): GatewayEvent => ({ type: 'text-delta', ...position, text })),
    { type: 'text-end', ...position },
  ];
}

async function through(
  events: readonly GatewayEvent[],
  operator: ReturnType<typeof mapText>,
): Promise<readonly GatewayEvent[]> {
  return lastValueFrom(from(events).pipe(operator, toArray()));
}

describe('mapText', () => {
  test('changes a stream as it changes the whole text, wherever the stream cuts it', async () => {
    // Results that hold what is looked for would change again if the function saw them.
    const change = (text: string): string => text.replaceAll(/moonshine|🙂🙂/g, '<moonshine>');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('moon', 'shine', 'moonshine', ' ', '🙂', '🙂🙂', 'm', 'o'), {
          maxLength: 12,
        }),
        fc.array(fc.nat(60), { maxLength: 8 }),
        async (parts, cuts) => {
          const text = parts.join('');
          const at = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length];
          const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
          const events = await through(streamOf(pieces), mapText(change, { window: 8 }));
          expect(textOf(events)).toBe(change(text));
        },
      ),
      { numRuns: tries(2000) },
    );
  });

  test('holds back no more than its window, and everything before the end of its block', async () => {
    const events = await through(
      streamOf(['0123456789', 'abcde']),
      mapText((text) => text, { window: 4 }),
    );
    expect(events.map((event) => ('text' in event ? event.text : event.type))).toEqual([
      'text-start',
      '012345',
      '6789a',
      'bcde',
      'text-end',
    ]);
  });

  test('keeps the texts of several blocks apart, and leaves kinds alone that are not named', async () => {
    const other = { block: 1, choice: 1 };
    const events = await through(
      [
        { type: 'text-delta', ...position, text: 'moon' },
        { type: 'text-delta', ...other, text: 'shine moon' },
        { type: 'reasoning-delta', block: 2, choice: 0, text: 'moonshine' },
        { type: 'text-delta', ...position, text: 'shine' },
        { type: 'text-end', ...position },
        { type: 'text-end', ...other },
      ],
      mapText((text) => text.replaceAll('moonshine', '*'), { window: 8 }),
    );
    const textIn = (block: number): string =>
      events
        .flatMap((event) =>
          'text' in event && 'block' in event && event.block === block ? [event.text] : [],
        )
        .join('');
    expect([textIn(0), textIn(1), textIn(2)]).toEqual(['*', 'shine moon', 'moonshine']);
  });

  test('gives what it holds at the end of a reply whose block did not end', async () => {
    const events = await through(
      [{ type: 'text-delta', ...position, text: 'abc' }],
      mapText((text) => text.toUpperCase(), { window: 8 }),
    );
    expect(textOf(events)).toBe('ABC');
  });

  test('holds a bounded length where the function treats no part by itself', async () => {
    const events = await through(
      streamOf(Array.from({ length: 100 }, () => 'x'.repeat(1000))),
      mapText((text) => String(text.length), { window: 2 }),
    );
    expect(events.length).toBeGreaterThan(4);
  });
});

describe('transformText', () => {
  test('changes arguments, refusals, reasoning and transcripts, each by its own transformer', async () => {
    const seen: string[] = [];
    const events = await through(
      [
        { type: 'tool-start', ...position, id: 'call_1', name: 'mail', custom: true },
        { type: 'tool-delta', ...position, input: 'a' },
        { type: 'tool-end', ...position },
        { type: 'reasoning-delta', block: 1, choice: 0, text: 'b' },
        { type: 'refusal-delta', block: 2, choice: 0, text: 'c' },
        { type: 'media-delta', block: 3, choice: 0, transcript: 'd', data: 'AAAA' },
        { type: 'text-delta', block: 4, choice: 0, text: 'e', logprobs: [{ token: 'e', logprob: 0 }] },
      ],
      transformText((info) => {
        seen.push(`${info.kind} ${info.tool ?? ''} ${info.custom ?? ''}`.trim());
        return { push: (text) => text.toUpperCase(), end: () => '!' };
      }),
    );
    expect(seen).toEqual(['arguments mail true', 'reasoning', 'refusal', 'transcript', 'text']);
    expect(events).toEqual([
      { type: 'tool-start', ...position, id: 'call_1', name: 'mail', custom: true },
      { type: 'tool-delta', ...position, input: 'A' },
      { type: 'tool-delta', ...position, input: '!' },
      { type: 'tool-end', ...position },
      { type: 'reasoning-delta', block: 1, choice: 0, text: 'B' },
      { type: 'refusal-delta', block: 2, choice: 0, text: 'C' },
      { type: 'media-delta', block: 3, choice: 0, transcript: 'D', data: 'AAAA' },
      { type: 'text-delta', block: 4, choice: 0, text: 'E' },
      { type: 'reasoning-delta', block: 1, choice: 0, text: '!' },
      { type: 'refusal-delta', block: 2, choice: 0, text: '!' },
      { type: 'media-delta', block: 3, choice: 0, transcript: '!' },
      { type: 'text-delta', block: 4, choice: 0, text: '!' },
    ]);
  });
});
