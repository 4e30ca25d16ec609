import { Busboy } from '@fastify/busboy';
import { describe, expect, test } from 'vitest';
import { boundaryOf, FormParser, formParserOf } from '../../../core/front/multipart.ts';
import { encodeFormEnd, encodePartHead } from '../../../core/upstream/form.ts';

interface Part {
  readonly name: string;
  readonly filename: string | undefined;
  content: string;
}

const text = 'form-data; name="purpose"';
const file = 'form-data; name="file"; filename="a.jsonl"';

/** A form whose second part has these lines as its head. */
const formOf = (head: string, content = 'lines'): Buffer =>
  Buffer.from(
    `--b\r\nContent-Disposition: ${text}\r\n\r\nbatch\r\n--b\r\n${head}\r\n\r\n${content}\r\n--b--\r\n`,
  );

/** Parses a form, and encodes it anew under another boundary. */
function passed(
  form: Buffer,
  parser = new FormParser('b'),
): { readonly parts: readonly Part[]; readonly encoded: Buffer } {
  const parts: Part[] = [];
  const encoded: Buffer[] = [];
  for (const token of parser.push(form))
    if (token.type === 'head') {
      parts.push({ name: token.head.name, filename: token.head.filename, content: '' });
      encoded.push(encodePartHead('new', token.head));
    } else if (token.type === 'data') {
      const last = parts.at(-1);
      if (last !== undefined) last.content += token.bytes.toString();
      encoded.push(token.bytes);
    } else encoded.push(Buffer.from('\r\n'));
  parser.finish();
  return { parts, encoded: Buffer.concat([...encoded, encodeFormEnd('new')]) };
}

/** Reads a form with a parser that is not ours. */
function readByBusboy(form: Buffer): Promise<readonly Part[]> {
  const parts: Part[] = [];
  const parser = new Busboy({
    headers: { 'content-type': 'multipart/form-data; boundary=new' },
    isPartAFile: (_name, _type, filename) => filename !== undefined,
  });
  parser.on('field', (name, content) => void parts.push({ name: name ?? '', filename: undefined, content }));
  parser.on('file', (name, stream, filename) => {
    const part = { name: name ?? '', filename: filename ?? '', content: '' };
    parts.push(part);
    stream.on('data', (chunk: Buffer) => (part.content += chunk.toString()));
  });
  return new Promise((resolve, reject) => {
    parser.on('finish', () => resolve(parts));
    parser.on('error', reject);
    parser.end(form);
  });
}

describe('a part that frameworks read in different ways is refused:', () => {
  test.each([
    [
      'a blank before the equals sign',
      'Content-Disposition: form-data; name="q"; name ="file"; filename ="b"',
    ],
    ['a blank behind the equals sign', 'Content-Disposition: form-data; name= "file"; filename= "b"'],
    ['two names', 'Content-Disposition: form-data; name="q"; name="file"; filename="b"'],
    ['two names that differ in case', 'Content-Disposition: form-data; name="q"; Name="file"'],
    ['two filenames', `Content-Disposition: ${file}; filename="b"`],
    ['a starred name', `Content-Disposition: form-data; name*=utf-8''file; filename="b"`],
    ['a name and a starred name', `Content-Disposition: form-data; name="q"; name*=utf-8''file`],
    ['a continued name', 'Content-Disposition: form-data; name*0="fi"; name*1="le"'],
    ['an unknown encoding of a filename', `Content-Disposition: form-data; name="q"; filename*=utf-16''%00a`],
    ['an unknown parameter', 'Content-Disposition: form-data; name="q"; size=3'],
    ['an escaped quote in a name', 'Content-Disposition: form-data; name="q\\"; filename=\\"b"'],
    ['a backslash at the end of a name', 'Content-Disposition: form-data; name="q\\"; filename="b"'],
    ['a name without its closing quote', 'Content-Disposition: form-data; name="q'],
    ['text behind a quoted name', 'Content-Disposition: form-data; name="q"file; filename="b"'],
    ['an empty parameter', 'Content-Disposition: form-data;; name="q"'],
    ['no name', 'Content-Disposition: form-data; filename="b"'],
    ['an empty name', 'Content-Disposition: form-data; name=""'],
    ['no disposition', 'Content-Type: text/plain'],
    ['another disposition', 'Content-Disposition: attachment; name="q"; filename="b"'],
    ['two dispositions', `Content-Disposition: ${text}\r\nContent-Disposition: ${file}`],
    ['a folded header', 'Content-Disposition: form-data; name="q"\r\n ; filename="b"'],
    ['a header folded by a tab', 'Content-Disposition: form-data;\r\n\tname="file"; filename="b"'],
    ['a blank before the colon', `Content-Disposition : ${file}`],
    ['a blank in the name of a header', `Content-Disposition: ${text}\r\nX Content-Type: a/b`],
    ['a line feed alone', `Content-Disposition: ${text}\nContent-Type: a/b`],
    ['a carriage return alone', `Content-Disposition: ${text}\rContent-Type: a/b`],
    ['a zero byte', 'Content-Disposition: form-data; name="q\0"; filename="b"'],
    ['base64', `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: base64`],
    ['quoted-printable', `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: quoted-printable`],
    ['gzip', `Content-Disposition: ${file}\r\nContent-Encoding: gzip`],
    ['the transfer encoding 8bitx', `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: 8bitx`],
    ['the transfer encoding x8bit', `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: x8bit`],
    [
      'the transfer encoding binary, 8bit',
      `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: binary, 8bit`,
    ],
    ['the transfer encoding 7bit; x', `Content-Disposition: ${file}\r\nContent-Transfer-Encoding: 7bit; x`],
    ['a disposition that begins alike', 'Content-Disposition: form-datax; name="q"'],
    ['a disposition that ends alike', 'Content-Disposition: xform-data; name="q"'],
    [
      'a filename in an encoding that ends alike',
      `Content-Disposition: form-data; name="q"; filename*=xutf-8''a`,
    ],
    [
      'a filename in an encoding with text behind it',
      `Content-Disposition: form-data; name="q"; filename*=utf-8''a(b`,
    ],
    ['a filename with half a code', `Content-Disposition: form-data; name="q"; filename*=utf-8''%e4`],
    ['a disposition with nothing but its kind', 'Content-Disposition: form-data'],
    ['a form in the form', `Content-Disposition: ${text}\r\nContent-Type: multipart/mixed; boundary=c`],
    ['a text in another charset', `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=utf-16`],
    [
      'a text in the charset xutf-8',
      `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=xutf-8`,
    ],
    [
      'a text in the charset utf-8x',
      `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=utf-8x`,
    ],
    [
      'a text in the charset utf-7',
      `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=utf-7`,
    ],
    [
      'a text in the charset xus-ascii',
      `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=xus-ascii`,
    ],
    [
      'a text in the charset iso-8859-15',
      `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=iso-8859-15`,
    ],
  ])('%s', (_, head) => {
    expect(() => passed(formOf(head))).toThrow('The form is damaged or not plain multipart/form-data');
  });

  test('bytes that are not UTF-8', () => {
    const head = Buffer.from(`Content-Disposition: form-data; name="q\xff"`, 'latin1');
    const form = Buffer.concat([Buffer.from('--b\r\n'), head, Buffer.from('\r\n\r\nx\r\n--b--\r\n')]);
    expect(() => passed(form)).toThrow('not valid UTF-8');
  });
});

describe('a form whose parts can be cut in different ways is refused:', () => {
  const part = `Content-Disposition: ${text}\r\n\r\nx`;
  test.each([
    ['text before it', `hello\r\n--b\r\n${part}\r\n--b--\r\n`],
    ['a second form behind it', `--b\r\n${part}\r\n--b--\r\n--b\r\n${part}\r\n--b--\r\n`],
    ['text behind it', `--b\r\n${part}\r\n--b--\r\nhello`],
    ['blanks behind a boundary', `--b \r\n${part}\r\n--b--\r\n`],
    ['a boundary that ends with a line feed', `--b\n${part}\r\n--b--\r\n`],
    ['a boundary that goes on', `--b\r\n${part}\r\n--bc\r\n${part}\r\n--b--\r\n`],
    ['a boundary in place of the data', `--b\r\nContent-Disposition: ${text}\r\n\r\n--b--\r\n`],
    ['no end', `--b\r\n${part}\r\n--b\r\n`],
  ])('%s', (_, form) => {
    expect(() => passed(Buffer.from(form))).toThrow('The form is damaged or not plain multipart/form-data');
  });

  test.each([
    'multipart/form-data; boundary=a; boundary=b',
    'multipart/form-data; boundary=a; Boundary=b',
    "multipart/form-data; boundary*=utf-8''a",
    'multipart/form-data; boundary = a',
    'multipart/form-data; boundary="a b "',
    'multipart/form-data; boundary="a\\"b"',
    'multipart/form-data; boundary=""',
    `multipart/form-data; boundary=${'a'.repeat(71)}`,
    'multipart/form-data; boundary=a, multipart/form-data; boundary=b',
    'multipart/form-data; x=1; boundary=a',
  ])('the content type %s', (type) => {
    expect(() => boundaryOf(type)).toThrow('must name one boundary');
  });
});

/**
 * Heads of files as clients write them. Sent by curl 7.88, Chromium 156, Node.js 24 (undici), Go 1.26, requests 2.34 with urllib3 2.8, httpx 0.28 and
 * aiohttp 3.14 (November 2026). The others stand in their sources: MultipartFormDataContent.cs and ContentDispositionHeaderValue.cs of .NET,
 * MultipartBody.kt of OkHttp (which HttpRequestBodies.kt of the OpenAI SDK for Java follows), RequestFactory.java of Retrofit, multipart.rs of
 * reqwest, MultipartStream.php of Guzzle, parts.rb of multipart-post, FormBodyPartBuilder.java and HttpRFC7578Multipart.java of Apache HttpClient,
 * form_data.js of form-data, format_header_param_rfc2231 in fields.py of urllib3.
 */
const written: readonly (readonly [client: string, head: string, filename: string])[] = [
  [
    'Chromium, undici, requests, httpx, curl and OkHttp',
    `Content-Disposition: form-data; name="file"; filename="a%22b.txt"\r\nContent-Type: text/plain`,
    'a%22b.txt',
  ],
  [
    'browsers and Python',
    `Content-Disposition: form-data; name="file"; filename="ä.txt"\r\nContent-Type: text/plain`,
    'ä.txt',
  ],
  [
    'Go and reqwest with a backslash',
    `Content-Disposition: form-data; name="file"; filename="a\\\\b.txt"`,
    'b.txt',
  ],
  [
    'old versions of urllib3',
    `Content-Disposition: form-data; name="file"; filename*=utf-8''%C3%A4.txt`,
    'ä.txt',
  ],
  [
    'Go',
    `Content-Disposition: form-data; name="file"; filename="a\\"b.txt"\r\nContent-Type: application/octet-stream`,
    'a"b.txt',
  ],
  [
    'OkHttp',
    `Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\nContent-Length: 5`,
    'a.txt',
  ],
  [
    'Retrofit',
    `Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Transfer-Encoding: binary`,
    'a.txt',
  ],
  [
    '.NET',
    `Content-Type: text/plain\r\nContent-Disposition: form-data; name=file; filename=a.txt; filename*=utf-8''a.txt`,
    'a.txt',
  ],
  [
    '.NET with a name that is not ASCII',
    `Content-Disposition: form-data; name=file; filename="=?utf-8?B?w6QudHh0?="; filename*=utf-8''%C3%A4.txt`,
    'ä.txt',
  ],
  [
    'Apache HttpClient 5',
    `Content-Disposition: form-data; name="file"; filename="%C3%A4.txt"; filename*="UTF-8''%C3%A4.txt"`,
    'ä.txt',
  ],
  [
    'multipart-post',
    `Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: binary`,
    'a.txt',
  ],
  [
    'aiohttp',
    `Content-Type: text/plain\r\nContent-Disposition: form-data; name="file"; filename="%C3%A4%20b.txt"`,
    '%C3%A4%20b.txt',
  ],
  [
    'curl --form-escape',
    `Content-Disposition: form-data; name="file"; filename="a\\"b.txt"\r\nContent-Type: text/plain`,
    'a"b.txt',
  ],
];

test.each(written)(
  'a file as %s writes it is read, and encoded so that others read the same',
  async (_, head, filename) => {
    const { parts, encoded } = passed(formOf(head));
    expect(parts).toEqual([
      { name: 'purpose', filename: undefined, content: 'batch' },
      { name: 'file', filename, content: 'lines' },
    ]);
    const expected = parts.map((part) => ({ ...part, filename: part.filename?.replaceAll('"', '%22') }));
    const read = await readByBusboy(encoded);
    expect(read.toSorted((a, b) => b.name.localeCompare(a.name))).toEqual(expected);
  },
);

test.each([
  [
    'Apache HttpClient',
    'Content-Disposition: form-data; name="q"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit',
  ],
  ['.NET', 'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=q'],
  ['Retrofit', 'Content-Disposition: form-data; name="q"\r\nContent-Transfer-Encoding: binary'],
  [
    'the OpenAI SDK for Java',
    'Content-Disposition: form-data; name="q"\r\nContent-Type: text/plain; charset=utf-8',
  ],
])('a text as %s writes it is read', (_, head) => {
  expect(passed(formOf(head)).parts[1]).toEqual({ name: 'q', filename: undefined, content: 'lines' });
});

test('a text whose charset is ISO-8859-1 is refused where UTF-8 would be another text', () => {
  const head = `Content-Disposition: ${text}\r\nContent-Type: text/plain; charset=ISO-8859-1`;
  expect(() => passed(formOf(head, 'ä'))).toThrow('a text is not UTF-8');
});

describe('a form whose content type names a charset', () => {
  const parsed = (charset: string, form: Buffer) =>
    passed(form, formParserOf(`multipart/form-data; charset=${charset}; boundary=b`)).parts;

  test.each(['utf-8', 'UTF8', '"utf-8"'])('is read as UTF-8 with %s', (charset) => {
    expect(parsed(charset, formOf('Content-Disposition: form-data; name="ä"', 'ö'))[1]).toMatchObject({
      name: 'ä',
      content: 'ö',
    });
  });

  test.each(['us-ascii', 'ISO-8859-1'])('is read with %s where that says the same as UTF-8', (charset) => {
    expect(parsed(charset, formOf(`Content-Disposition: ${text}`))[1]).toMatchObject({ content: 'lines' });
    const named = formOf('Content-Disposition: form-data; name="ä"');
    expect(() => parsed(charset, named)).toThrow('not UTF-8');
    expect(() => parsed(charset, formOf(`Content-Disposition: ${text}`, 'ä'))).toThrow('not UTF-8');
    // The bytes of a file are not text of the form.
    expect(parsed(charset, formOf(`Content-Disposition: ${file}`, 'ä'))[1]).toMatchObject({ content: 'ä' });
  });

  test.each(['utf-16', 'xutf-8', 'utf-8x', 'iso-8859-15', ''])('is refused with %s', (charset) => {
    expect(() => parsed(charset, formOf(`Content-Disposition: ${text}`))).toThrow(/not UTF-8|one boundary/);
  });
});

test.each(['7bit', '8BIT', 'Binary'])('a text in the transfer encoding %s is read', (encoding) => {
  const head = `Content-Disposition: ${text}\r\nContent-Transfer-Encoding: ${encoding}`;
  expect(passed(formOf(head)).parts[1]?.content).toBe('lines');
});

test.each(['text/multipart', 'text/x-multipart', 'application/multipartx'])(
  'a file of the type %s is no form in the form',
  (type) => {
    expect(passed(formOf(`Content-Disposition: ${file}\r\nContent-Type: ${type}`)).parts[1]).toMatchObject({
      content: 'lines',
    });
  },
);

test('a name of 200 characters is read, and a longer one refused', () => {
  const named = (length: number) => formOf(`Content-Disposition: form-data; name="${'n'.repeat(length)}"`);
  expect(passed(named(200)).parts[1]?.name).toHaveLength(200);
  expect(() => passed(named(201))).toThrow('The name of a form field is too long.');
});

test('a form that ends with an empty line is read', () => {
  expect(
    passed(Buffer.concat([formOf(`Content-Disposition: ${file}`), Buffer.from('\r\n')])).parts,
  ).toHaveLength(2);
});
