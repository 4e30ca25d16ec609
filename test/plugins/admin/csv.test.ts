import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvOf, type NamedRecord } from '../../../plugins/admin/csv.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';

const record: NamedRecord = {
  id: 'req_1',
  at: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  ip: '192.0.2.1',
  operation: 'chat',
  format: 'messages',
  model: 'm',
  stream: false,
  status: 200,
  ended: 'complete',
  input: 1,
  output: 2,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  microDollars: 30,
  ms: 12.5,
};

async function table(...records: NamedRecord[]): Promise<string> {
  let text = '';
  for await (const block of csvOf(
    (async function* each() {
      yield* records;
    })(),
  ))
    text += block;
  return text;
}

/** The cells of a table, as a program reads them. */
function cellsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}

test('a table has the id and the name of a key, and no name is read as a formula', async () => {
  const [head = [], line = []] = cellsOf(await table({ ...record, keyId: 'key_1', keyName: '=1+1, "x"' }));
  const cells = Object.fromEntries(head.map((name, index) => [name, line[index]]));
  expect(cells).toMatchObject({ keyId: 'key_1', keyName: `'=1+1, "x"` });
});

test('dollars have six places, and a sign where they are given back', async () => {
  const [head = [], ...lines] = cellsOf(
    await table(
      { ...record, microDollars: -30 },
      { ...record, microDollars: -1_000_000 },
      { ...record, microDollars: 12 },
    ),
  );
  const column = head.indexOf('dollars');
  expect(lines.map((line) => line[column])).toEqual(['-0.000030', '-1.000000', '0.000012']);
});

test('a table has a head and a line for each record, with times that people can read', async () => {
  const [head = [], line = []] = cellsOf(await table(record));
  const cells = Object.fromEntries(head.map((name, index) => [name, line[index]]));
  expect(cells).toMatchObject({
    id: 'req_1',
    at: '2026-01-02T03:04:05.006Z',
    microDollars: '30',
    keyId: '',
    stream: 'false',
    ms: '12.5',
  });
});

test('an empty log is a head alone', async () => {
  expect(cellsOf(await table())).toHaveLength(1);
});

test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '|calc', '%0A', '\r=1'])(
  'a model named %j is no formula for the program that opens the table',
  async (model) => {
    const [head = [], line = []] = cellsOf(await table({ ...record, model }));
    expect(line[head.indexOf('model')]).toBe(`'${model}`);
  },
);

test('whatever a client writes stays in its cell', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: anyCharacter }), async (model) => {
      const [head = [], line = [], ...rest] = cellsOf(await table({ ...record, model }));
      expect(rest).toEqual([]);
      expect(line).toHaveLength(head.length);
      expect([model, `'${model}`]).toContain(line[head.indexOf('model')]);
    }),
    { numRuns: tries(300) },
  );
});
