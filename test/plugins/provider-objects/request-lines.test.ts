import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import chatCompletions from '../../../core/formats/chat-completions/index.ts';
import type { ByteBudget } from '../../../core/front/byte-budget.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { BegunLines } from '../../../plugins/provider-objects/known-lines.ts';
import { RequestLines } from '../../../plugins/provider-objects/request-lines.ts';
import { cut } from '../../support/cut.ts';
import { tries } from '../../support/tries.ts';
import { batchLine } from './_stage.ts';

const limits = { body: 1e9, depth: 32, values: 1000, members: 100 };

function linesOf(begun?: BegunLines, budget?: ByteBudget): RequestLines {
  const tools = {
    formats: () => chatCompletions,
    limits,
    sampling: 'exclusive' as const,
    ...(budget === undefined ? {} : { budget }),
  };
  return new RequestLines('chat-completions', tools, begun);
}

test('the requests of a file are known however it is cut, and of a file with anything else none are', async () => {
  const lines = [
    batchLine('gpt-a', 'one'),
    batchLine('gpt-b', 'zwei \u{1F315}'),
    batchLine('gpt-a', 'three'),
  ];
  const good = Buffer.from(`${lines.join('\n')}\n`);
  const bad = Buffer.from([...lines, '{"model":"gpt-c"}'].join('\n'));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 8 }), async (places) => {
      const read = async (bytes: Buffer) => {
        let requests = linesOf();
        for (const piece of cut(bytes, places)) {
          // oxlint-disable-next-line no-await-in-loop -- one piece after the other
          await requests.push(piece);
          // As between two requests, by which other processes may come.
          const begun = requests.begun();
          if (begun !== undefined) requests = linesOf(JSON.parse(JSON.stringify(begun)) as typeof begun);
        }
        return requests.end();
      };
      const known = await read(good);
      expect(known).toMatchObject({
        models: ['gpt-a', 'gpt-b'],
        references: [],
        count: 3,
        endpoints: ['/v1/chat/completions'],
        needs: { 'gpt-a': { calls: 2, open: 2 }, 'gpt-b': { calls: 1, open: 1 } },
      });
      expect(await read(bad)).toBeUndefined();
    }),
    { numRuns: tries(300) },
  );
});

test('every byte of a file goes to the provider, however it is cut and whatever is in it', async () => {
  const line = fc.constantFrom(
    '',
    ' ',
    '{',
    'text',
    batchLine('gpt-a'),
    `${batchLine('gpt-a')}\r`,
    '{"a":1}',
  );
  const file = fc.array(line, { maxLength: 6 }).map((all) => Buffer.from(all.join('\n')));
  await fc.assert(
    fc.asyncProperty(file, fc.array(fc.nat(), { maxLength: 8 }), async (bytes, places) => {
      const requests = linesOf();
      const passed: Buffer[] = [];
      for (const piece of cut(bytes, places))
        // oxlint-disable-next-line no-await-in-loop -- one piece after the other
        passed.push(await requests.push(piece));
      passed.push(requests.flush());
      expect(Buffer.concat(passed).toString()).toBe(bytes.toString());
    }),
    { numRuns: tries(300) },
  );
});

test('lines are read in slices, between which other callers have their turn', async () => {
  const values = Array.from({ length: 400 }, () => '{}').join(',');
  const line = `{"custom_id":"a","url":"/v1/chat/completions","body":{"model":"gpt-a","messages":[${values}]}}\n`;
  const file = Buffer.from(line.repeat(2000));
  let turns = 0;
  let isOver = false;
  const other = (): void => {
    turns += 1;
    if (!isOver) setImmediate(other);
  };
  setImmediate(other);
  const requests = linesOf();
  await requests.push(file);
  isOver = true;
  expect(requests.end()?.count).toBe(2000);
  expect(turns).toBeGreaterThan(3);
});

/** A budget of so many bytes, which throws as the gateway's does. */
function budgetOf(most: number) {
  const budget = {
    most,
    held: 0,
    highest: 0,
    take(bytes: number) {
      if (budget.held + bytes > most)
        throw new GatewayError('server_is_overloaded', 'Too many request bytes in memory.');
      budget.held += bytes;
      budget.highest = Math.max(budget.highest, budget.held);
    },
    giveBack: (bytes: number) => void (budget.held -= bytes),
  };
  return budget;
}

describe('memory of lines', () => {
  const line = Buffer.from(`${batchLine('gpt-a', 'one', 'x'.repeat(10_000))}\n`);

  test('is counted while a line comes, and given back behind it', async () => {
    const budget = budgetOf(1_000_000);
    const requests = linesOf(undefined, budget);
    await requests.push(line.subarray(0, 8000));
    expect(budget.held).toBe(8000);
    await requests.push(line.subarray(8000));
    expect(budget.highest).toBeGreaterThan(line.length);
    expect(budget.held).toBe(0);
    expect(requests.end()?.count).toBe(1);
  });

  test('is given back when the upload breaks, and when a line is no request', async () => {
    const budget = budgetOf(1_000_000);
    const broken = linesOf(undefined, budget);
    await broken.push(line.subarray(0, 8000));
    broken.close();
    const wrong = linesOf(undefined, budget);
    await wrong.push(Buffer.concat([line, Buffer.from('{}\n'), line.subarray(0, 100)]));
    expect(wrong.reason).toBe('Request 2: The line is not a request of a batch.');
    expect(budget.held).toBe(0);
  });

  test('that is not there refuses the upload with 503, in place of forgetting its lines', async () => {
    const budget = budgetOf(20_000);
    budget.take(15_000);
    const requests = linesOf(undefined, budget);
    await expect(requests.push(line)).rejects.toMatchObject({ status: 503 });
  });
});
