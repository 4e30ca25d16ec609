import { describe, expect, test } from 'vitest';
import { matrix, type Case } from './cases.ts';
import type { Seen } from './clients.ts';
import { dialects, formats, tagOf, wordsOf } from './dialects.ts';
import { faultNamed } from './faults.ts';
import { judge } from './oracles.ts';
import { everything } from '../support/tries.ts';
import { chaos } from './run.ts';

const seed = 20_261_121;

describe('a provider that misbehaves', () => {
  test('breaks no promise to clients, and leaves nothing behind', async () => {
    const { cases, violations, outcomes } = await chaos({
      seed,
      only: 'chat-completions > messages',
      parallel: 24,
    });
    expect(violations).toEqual([]);
    expect(cases).toBeGreaterThan(100);
    expect(outcomes.complete).toBeGreaterThan(30);
    expect(outcomes.refused).toBeGreaterThan(10);
    expect(outcomes.broken).toBeGreaterThan(3);
  });
});

describe('a gateway that is spoiled on purpose is found out', () => {
  const seams = [
    ['clean-end', '-after stream chat-completions > messages alone', /neither|says|not broken|no \[DONE\]/],
    ['refusal-as-success', '503 whole chat-completions > messages alone', /cannot be read|no complete reply/],
    ['leak', 'plain stream chat-completions > messages', /connections to the provider|claims are left/],
    ['lost-record', 'plain whole chat-completions > messages', /has no record|spent, records of/],
  ] as const;

  // One shows that the check looks at all; `npm run fuzz` tries each.
  test.each(everything ? seams : seams.slice(-1))('%s', async (seam, only, expected) => {
    const { violations } = await chaos({ seed, only, rounds: 3, most: 12, seam, quietAfter: 4000 });
    expect(violations.join('\n')).toMatch(expected);
  });
});

describe('what a client saw', () => {
  const fault = faultNamed('plain');
  const base: Case = {
    number: 7,
    fault,
    client: 'messages',
    channel: 'chat-completions',
    mode: 'stream',
    conduct: 'stays',
    leaveAfter: 0,
    size: 'small',
    fresh: true,
    asksUsage: false,
    key: 0,
  };
  const words = wordsOf(tagOf(7, 'small'));
  const frames = (one: Case): string[] =>
    dialects[one.client].frames(words, `${one.fault.name}.${one.channel}.alone`);
  const seenOf = (text: string, more: Partial<Seen> = {}): Seen => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    text,
    ended: true,
    left: false,
    hung: false,
    id: 'req_1',
    milliseconds: 1,
    ...more,
  });

  test.each(formats)('is right when all of it came (%s)', (client) => {
    const one = { ...base, client };
    expect(judge(one, seenOf(frames(one).join('')))).toEqual({ outcome: 'complete', problems: [] });
  });

  test.each(formats)(
    'is wrong when something is missing, doubled, of another call, or never ends (%s)',
    (client) => {
      const one = { ...base, client };
      const all = frames(one);
      const wrong: Seen[] = [
        seenOf(all.slice(0, -1).join('')),
        seenOf(all.toSpliced(-dialects[client].ending - 1, 1).join('')),
        seenOf(all.join('') + (all.at(-1) ?? '')),
        seenOf(all.join('').replaceAll('case-7', 'case-8')),
        seenOf(all.join(''), { ended: false }),
        seenOf(all.join(''), { hung: true }),
        seenOf('', { status: 0 }),
        seenOf('<html></html>', { status: 502 }),
      ];
      for (const seen of wrong) expect(judge(one, seen).problems).not.toEqual([]);
      const cut = { ...one, fault: faultNamed('reset-after') };
      expect(judge(cut, seenOf(frames(cut).join(''))).problems).not.toEqual([]);
    },
  );
});

test('the same seed draws the same cases', () => {
  expect(matrix({ seed: 5, most: 50 })).toEqual(matrix({ seed: 5, most: 50 }));
  expect(matrix({ seed: 5, most: 50 })).not.toEqual(matrix({ seed: 6, most: 50 }));
});
