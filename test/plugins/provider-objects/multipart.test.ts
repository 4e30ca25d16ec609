import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import chatCompletions from '../../../core/formats/chat-completions/index.ts';
import { boundaryOf, FormScan } from '../../../plugins/provider-objects/multipart.ts';
import { RequestLines } from '../../../plugins/provider-objects/request-lines.ts';
import { tries } from '../../support/tries.ts';
import { batchLine } from './_stage.ts';

interface Part {
  readonly name: string;
  readonly isFile: boolean;
  readonly content: string;
}

/** What a scan tells of a form that comes in these pieces. */
function scanned(pieces: readonly Buffer[], boundary: string): readonly Part[] {
  const parts: { name: string; isFile: boolean; content: string }[] = [];
  let ended = 0;
  const scan = new FormScan(boundary, {
    head: ({ name, isFile }) => void parts.push({ name, isFile, content: '' }),
    data(bytes) {
      const last = parts.at(-1);
      if (last !== undefined) last.content += bytes.toString('latin1');
    },
    end: () => void (ended += 1),
  });
  for (const piece of pieces) scan.push(piece);
  scan.finish();
  expect(ended).toBe(parts.length);
  return parts;
}

function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const at = [
    0,
    ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b),
    bytes.length,
  ];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

test('a form is read the same however it is cut, and whatever in it looks like its boundary', () => {
  const content = fc
    .array(fc.constantFrom('a', '\r', '\n', '-', '--', 'b', '\r\n--', '\r\n', '\u00ff'))
    .map((all) => all.join(''));
  const part = fc.record({ name: fc.stringMatching(/^[a-z]{1,5}$/), isFile: fc.boolean(), content });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), fc.array(fc.nat(), { maxLength: 8 }), (parts, places) => {
      const boundary = 'bxbx';
      const text = parts
        .map(
          ({ name, isFile, content: value }) =>
            `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${isFile ? '; filename="f"' : ''}\r\n\r\n${value}\r\n`,
        )
        .join('');
      const form = Buffer.from(`${text}--${boundary}--\r\n`, 'latin1');
      expect(scanned(cut(form, places), boundary)).toEqual(parts);
    }),
    { numRuns: tries(2000) },
  );
});

test.each([
  ['what has no boundary', 'text'],
  ['a form without an end', '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n'],
  ['a part without a name', '--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--'],
  [
    'a part with two names',
    '--b\r\ncontent-disposition: form-data; name="a"\r\ncontent-disposition: form-data; name="b"\r\n\r\nx\r\n--b--',
  ],
  ['a boundary that goes on', '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n--bc\r\n--b--'],
  ['a head without an end', `--b\r\ncontent-disposition: form-data; name="a"; x="${'y'.repeat(20_000)}"`],
])('%s is damaged', (_, text) => {
  expect(() => scanned([Buffer.from(text)], 'b')).toThrow('The form is damaged');
});

test('a boundary is read from the content type as it is written', () => {
  expect(boundaryOf('multipart/form-data; boundary=abc')).toBe('abc');
  expect(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b:c"')).toBe('a b:c');
  expect(() => boundaryOf('application/json')).toThrow('must be multipart/form-data');
  expect(() => boundaryOf('multipart/form-data')).toThrow('no boundary');
});

test('the requests of a file are known however it is cut, and of a file with anything else none are', () => {
  const lines = [
    batchLine('gpt-a', 'one'),
    batchLine('gpt-b', 'zwei \u{1F315}'),
    batchLine('gpt-a', 'three'),
  ];
  const good = Buffer.from(`${lines.join('\n')}\n`);
  const bad = Buffer.from([...lines, '{"model":"gpt-c"}'].join('\n'));
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 8 }), (places) => {
      const read = (bytes: Buffer) => {
        let requests = new RequestLines('chat-completions', () => chatCompletions);
        for (const piece of cut(bytes, places)) {
          requests.push(piece);
          // As between two requests, by which other processes may come.
          const begun = requests.begun();
          if (begun !== undefined)
            requests = new RequestLines(
              'chat-completions',
              () => chatCompletions,
              JSON.parse(JSON.stringify(begun)) as typeof begun,
            );
        }
        return requests.end();
      };
      const known = read(good);
      expect(known).toMatchObject({
        models: ['gpt-a', 'gpt-b'],
        references: [],
        count: 3,
        endpoints: ['/v1/chat/completions'],
        needs: { 'gpt-a': { calls: 2, open: 2 }, 'gpt-b': { calls: 1, open: 1 } },
      });
      expect(read(bad)).toBeUndefined();
    }),
    { numRuns: tries(300) },
  );
});
