/** A body of `multipart/form-data` as a client could send it, sound or odd. */
export interface FuzzedBody {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Yields as many bodies as are asked for, always the same ones for a seed. */
export function* fuzzedBodies(seed: number, count: number): Generator<FuzzedBody, undefined> {
  const draw = new Draw(seed);
  for (let number = 0; number < count; number += 1) yield fuzzedBody(draw);
  return undefined;
}

/** Share of the pieces of a body that are odd. */
const oddShare = 0.06;

/** Random numbers that a seed determines: https://github.com/bryc/code/blob/master/jshash/PRNGs.md, mulberry32. */
class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  oneOf<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.fraction() * items.length)];
    if (item === undefined) throw new Error('There is nothing to draw from.');
    return item;
  }

  /** Returns the plain one, and now and then an odd one. */
  mostly(plain: string, odd: readonly string[]): string {
    return this.fraction() < oddShare ? this.oneOf(odd) : plain;
  }
}

const names = [
  'file',
  'model',
  'purpose',
  'file[]',
  'file[0]',
  'a b',
  ' a',
  'a ',
  'a;b',
  'a; filename=x',
  "a; filename*=utf-8''x",
  'a=b',
  'a,b',
  'a:b',
  "'a'",
  '(a)',
  '<a>',
  'a%22b',
  'a%0d%0ab',
  "utf-8''a",
  '=?utf-8?B?w6Q=?=',
  '=?utf-8?q?=22?=',
  'ä',
  'à',
  'Å',
  '\u0085',
  '\u00a0a\u00a0',
  '\u2028',
  '\u{1f600}',
  '\ufeffa',
  '__proto__',
  '_charset_',
  'File',
  '*',
  'a*',
  'a*0',
];
const oddNames = ['', 'a\\', 'a\\"b', 'a\\\\b', 'a"b', 'a\u0000', 'a\tb', 'a\u007fb', 'a\rb', 'a\nb'];
const filenames = [
  ...names,
  'a.txt',
  '',
  ['C:', 'x', 'a.txt'].join('\\'),
  '\\\\host\\a.txt',
  '../a.txt',
  '/etc/passwd',
  'a\\"b.txt',
  'a\\\\b.txt',
  'a\\\\',
  'a"; name="b',
];
const separators = [';', ' ; ', ';\t', ';;', '; ;', ', ', ' ', '\r\n ', ';\r\n\t', ';\n '];

function parameter(draw: Draw, key: string, value: string): string {
  const odd = [
    `${key} = "${value}"`,
    `${key} ="${value}"`,
    `${key}= "${value}"`,
    `${key}='${value}'`,
    `${key}=${value}`,
    `${key}="${value}`,
    `${key}="${value}"x`,
    `${key}`,
    `${key}=`,
    `${key}*=utf-8''${encodeURIComponent(value.toWellFormed())}`,
    `${key}*=UTF-8'en'${encodeURIComponent(value.toWellFormed())}`,
    `${key}*=iso-8859-1''%e4`,
    `${key}*="utf-8''${value}"`,
    `${key}*0="${value}"; ${key}*1="b"`,
    `${key}*0*=utf-8''a; ${key}*1*=b`,
    `${key}="${value}"; ${key}="other"`,
    `${key}="other"; ${key.toUpperCase()}="${value}"`,
    `${key}="${value}"; ${key}*=utf-8''other`,
    `${key}*=utf-8''other; ${key}="${value}"`,
  ];
  return draw.mostly(`${key}="${value}"`, [...odd, `${key.toUpperCase()}="${value}"`, `${key}=a-token.txt`]);
}

function disposition(draw: Draw, isFile: boolean): string {
  const name = draw.fraction() < oddShare ? draw.oneOf(oddNames) : draw.oneOf(names);
  const parameters = [parameter(draw, 'name', name)];
  if (isFile) parameters.push(parameter(draw, 'filename', draw.oneOf(filenames)));
  const more = draw.mostly('', ['size=3', 'x="y"', 'filename=""', 'name=""', '"', 'creation-date="a;b"']);
  if (more !== '') parameters.push(more);
  if (draw.fraction() < oddShare) parameters.reverse();
  const type = draw.mostly('form-data', ['Form-Data', 'attachment', 'file', 'form-datax', '', '"form-data"']);
  return parameters.reduce((text, next) => text + draw.mostly('; ', separators) + next, type);
}

const contentTypes = [
  'text/plain',
  'text/plain; charset=utf-8',
  'TEXT/PLAIN;charset="UTF-8"',
  'text/plain; charset=iso-8859-1',
  'text/plain; charset=utf-16',
  'text/plain; charset=utf-7',
  'application/json',
  'application/octet-stream',
  'multipart/mixed; boundary=c',
  'multipart/form-data; boundary=b',
  'application/jsonl; name="a.txt"',
  'nothing',
  '',
];
const otherHeaders = [
  'Content-Transfer-Encoding: 7bit',
  'Content-Transfer-Encoding: 8bit',
  'Content-Transfer-Encoding: binary',
  'Content-Transfer-Encoding: base64',
  'Content-Transfer-Encoding: quoted-printable',
  'Content-Transfer-Encoding: x',
  'Content-Encoding: gzip',
  'Content-Length: 3',
  'Content-Length: 99999',
  'Content-ID: <a>',
  'X-Other: a; name="b"; filename="c"',
  'Content-Disposition: form-data; name="second"; filename="second.txt"',
  'Content-Disposition-X: form-data; name="second"',
  'Content-Description: a\r\n folded',
  'no colon',
  ': no name',
  'X-Empty:',
];

function head(draw: Draw, isFile: boolean): string {
  const key = draw.mostly('Content-Disposition', [
    'content-disposition',
    'CONTENT-DISPOSITION',
    ' Content-Disposition',
  ]);
  const colon = draw.mostly(': ', [':', ' : ', ':\t', ':  ', ':\r\n ']);
  const lines = [`${key}${colon}${disposition(draw, isFile)}${draw.mostly('', [' ', ';', '; ', '\t'])}`];
  if (draw.fraction() < (isFile ? 0.5 : 0.1)) lines.push(`Content-Type: ${draw.oneOf(contentTypes)}`);
  if (draw.fraction() < 0.1) lines.push(draw.oneOf(otherHeaders));
  if (draw.fraction() < 0.1) lines.reverse();
  return lines.join(draw.mostly('\r\n', ['\n', '\r', '\r\n\r\n']));
}

const contents = [
  'lines',
  '',
  'a\r\nb',
  '\r\n',
  '\n',
  '\r',
  '\r\n--',
  '\r\n-',
  'a\r\n--c\r\n',
  '--b',
  '--b\r\n',
  '--b--',
  '\n--b\r\nContent-Disposition: form-data; name="hidden"\r\n\r\nx',
  '\r--b\r\nContent-Disposition: form-data; name="hidden"\r\n\r\nx',
  '\r\n --b\r\nContent-Disposition: form-data; name="hidden"\r\n\r\nx',
  '\r\r\n--c',
  'a\r\n\r\n\r\n',
  'aGVsbG8=',
  '=41',
  'ä\u{1f600}',
  '\u0000\u0001',
];

function fuzzedBody(draw: Draw): FuzzedBody {
  const boundary = draw.mostly('b', ['b--', '--b', "a'b", 'a b', 'b'.repeat(70)]);
  const quotedBoundary = `multipart/form-data; boundary="${boundary}"`;
  const type = draw.mostly(
    /[' ]/.test(boundary) ? quotedBoundary : `multipart/form-data; boundary=${boundary}`,
    [
      quotedBoundary,
      `Multipart/Form-Data;BOUNDARY=${boundary}`,
      `multipart/form-data; charset=utf-8; boundary=${boundary}`,
      `multipart/form-data; boundary=${boundary}; charset=utf-16`,
      `multipart/form-data; boundary=${boundary}; charset=iso-8859-1`,
      `multipart/form-data; boundary=${boundary}; boundary=c`,
      `multipart/form-data; boundary=c; boundary=${boundary}`,
      `multipart/form-data; boundary*=utf-8''${boundary}`,
      `multipart/form-data; boundary = ${boundary}`,
      `multipart/form-data; x=1; boundary=${boundary}`,
      `multipart/mixed; boundary=${boundary}`,
    ],
  );
  const pieces = [draw.mostly('', ['\r\n', '\r\n\r\n', '\n', 'preamble\r\n', ' '])];
  const parts = 1 + Math.floor(draw.fraction() * 3);
  for (let part = 0; part < parts; part += 1) {
    const isFile = draw.fraction() < 0.5;
    const line = draw.mostly('\r\n', ['\n', ' \r\n', '\t\r\n', '\r', 'x\r\n', '--\r\n', '-\r\n']);
    const blank = draw.mostly('\r\n\r\n', ['\n\n', '\r\n', '\r\n\n', '\r\n \r\n', '\r\n\r\n\r\n']);
    const content = draw.fraction() < 0.6 ? 'lines' : draw.oneOf(contents);
    const end = draw.mostly('\r\n', ['\n', '', '\r', '\r\n\r\n']);
    pieces.push(`--${boundary}${line}${head(draw, isFile)}${blank}${content}${end}`);
  }
  const last = [`--${boundary}`, `--${boundary}-`, `--${boundary}\r\n`, '', `--${boundary}--x`, `--c--\r\n`];
  const behind = ['\r\n', '\r\n\r\n', '\r\nepilogue', '\n', '\r', '\r\n--b\r\n', ' \r\n'].map(
    (text) => `--${boundary}--${text}`,
  );
  pieces.push(draw.mostly(`--${boundary}--${draw.oneOf(['', '\r\n'])}`, [...last, ...behind]));
  const text = pieces.join('');
  // Now and then every character is one byte, so that some names and texts are not UTF-8.
  return { type, bytes: Buffer.from(text, draw.fraction() < 0.03 ? 'latin1' : 'utf8') };
}
