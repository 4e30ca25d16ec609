import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundaryOf, FormParser } from '../../../core/front/multipart.ts';
import { cut } from '../../support/cut.ts';
import { tries } from '../../support/tries.ts';

interface Part {
  readonly name: string;
  readonly isFile: boolean;
  readonly content: string;
}

/** Returns the parts of a form that comes in these pieces. */
function parsed(pieces: readonly Buffer[], boundary: string): readonly Part[] {
  const parts: { name: string; isFile: boolean; content: string }[] = [];
  let ended = 0;
  const parser = new FormParser(boundary);
  for (const piece of pieces)
    for (const token of parser.push(piece)) {
      const last = parts.at(-1);
      if (token.type === 'head')
        parts.push({ name: token.head.name, isFile: token.head.filename !== undefined, content: '' });
      else if (token.type === 'end') ended += 1;
      else if (last !== undefined) last.content += token.bytes.toString('latin1');
    }
  parser.finish();
  expect(ended).toBe(parts.length);
  return parts;
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
      expect(parsed(cut(form, places), boundary)).toEqual(parts);
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
  expect(() => parsed([Buffer.from(text)], 'b')).toThrow('The form is damaged');
});

test.each([
  ['that goes on', 'y'.repeat(9_000)],
  ['that ends', `${'y'.repeat(9_000)}"\r\n\r\nx\r\n--b--`],
])('headers of a part that are too long are refused before the form has ended: %s', (_what, rest) => {
  const parser = new FormParser('b');
  const text = `--b\r\ncontent-disposition: form-data; name="a"; x="${rest}`;
  expect(() => [...parser.push(Buffer.from(text))]).toThrow('more than 8192 bytes');
});

test('one empty line before a form is passed over, as some clients write it, and no more', () => {
  const form = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n--b--\r\n';
  const parts = [{ name: 'a', isFile: false, content: 'x' }];
  expect(parsed([Buffer.from(`\r\n${form}`)], 'b')).toEqual(parts);
  expect(() => parsed([Buffer.from(`\r\n\r\n\r\n${form}`)], 'b')).toThrow('The form is damaged');
});

test('a boundary is read from the content type as it is written', () => {
  expect(boundaryOf('multipart/form-data; boundary=abc')).toBe('abc');
  expect(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b:c"')).toBe('a b:c');
  expect(() => boundaryOf('application/json')).toThrow('must be multipart/form-data');
  expect(() => boundaryOf('multipart/form-data')).toThrow('must name one boundary');
});

test.each([
  ['multipart/form-data;boundary=abc', 'abc'],
  ['  multipart/form-data  ;  boundary=abc  ;  charset=utf-8  ', 'abc'],
  ['multipart/form-data;\tBOUNDARY="abc"', 'abc'],
  ["multipart/form-data; boundary=a'+_-.9Z", "a'+_-.9Z"],
  ['multipart/form-data; boundary="a,/:=?()b"', 'a,/:=?()b'],
  [`multipart/form-data; boundary=${'x'.repeat(70)}`, 'x'.repeat(70)],
  ['multipart/form-data; boundary=x', 'x'],
])('the boundary of %j is %j', (type, boundary) => {
  expect(boundaryOf(type)).toBe(boundary);
});

test.each([
  'multipart/form-data;',
  'multipart/form-data; charset=utf-8',
  'multipart/form-data; boundary=',
  'multipart/form-data; boundary=""',
  'multipart/form-data; boundary="a b "',
  'multipart/form-data; boundary="a\\b"',
  'multipart/form-data; boundary="a',
  'multipart/form-data; boundary=a b',
  'multipart/form-data; boundary = a',
  'multipart/form-data; boundary=a, boundary=b',
  'multipart/form-data; boundary=a; Boundary=b',
  'multipart/form-data; boundary=a; other=b',
  'multipart/form-data; xboundary=a',
  'multipart/form-data boundary=a',
  'multipart/form-data; boundary=a#b',
  'multipart/form-data; boundary="a#b"',
  'multipart/form-data; boundary="ä"',
  `multipart/form-data; boundary=${'x'.repeat(71)}`,
])('%j names no boundary that all read alike', (type) => {
  expect(() => boundaryOf(type)).toThrow(expect.objectContaining({ status: expect.any(Number) as number }));
  expect(() => boundaryOf(type)).toThrow(/must (?:name one boundary|be multipart\/form-data)/);
});

test.each([
  '',
  'multipart/form-database; boundary=a',
  'text/multipart/form-data; boundary=a',
  'multipart/mixed; boundary=a',
])('%j is no form', (type) => {
  expect(() => boundaryOf(type)).toThrow('must be multipart/form-data');
});

test('all that cannot belong to a boundary goes on at once, and only what can is waited for', () => {
  const parser = new FormParser('boundary');
  const sent = (text: string): string =>
    [...parser.push(Buffer.from(text, 'latin1'))]
      .map((token) => (token.type === 'data' ? token.bytes.toString('latin1') : `<${token.type}>`))
      .join('');
  expect(sent('--boundary\r\ncontent-disposition: form-data; name="a"\r\n\r\nabc')).toBe('<head>abc');
  expect(sent('def')).toBe('def');
  expect(sent('gh\r')).toBe('gh');
  expect(sent('i')).toBe('\ri');
  expect(sent('j\r\n--bound')).toBe('j');
  expect(sent('less')).toBe('\r\n--boundless');
  expect(sent('\r\rk')).toBe('\r\rk');
  expect(sent('l\r\n')).toBe('l');
  expect(sent('--boundary')).toBe('<end>');
  expect(sent('--\r\n')).toBe('');
  parser.finish();
});
