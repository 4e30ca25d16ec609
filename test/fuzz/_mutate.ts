import * as fc from 'fast-check';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Written into the text as it is: JSON can say what JSON.stringify cannot. */
const raw: Readonly<Record<string, string>> = {
  '@huge': '1e400',
  '@minus-zero': '-0',
  '@precise': '12345678901234567890.123456789',
  '@half-a-pair': '"\\ud83d"',
  '@proto': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  '@twice': '{"a":1,"a":{"b":2}}',
};

const odd: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json[]>(null, true, false, 0, 1, -1, 0.5, 2, 1e308, -1e308, 2 ** 53, 1e21),
  fc.constantFrom<Json[]>(
    '',
    'x',
    ' ',
    '\u0000',
    '\n\n',
    'data: x\n\n',
    '[DONE]',
    'null',
    '1',
    'true',
    'constructor',
    '__proto__',
    '{}',
    '{"a":1}',
    '{"a":',
    '../..',
    'x'.repeat(5000),
    '😀'.repeat(50),
  ),
  fc.constantFrom<Json[]>(
    'data:image/png;base64,iVBORw0KGgo=',
    'data:image/png;base64,%%%',
    'data:',
    'data:,x',
    'http://',
    'https://example.com/x.png',
    'file:///etc/passwd',
    'gs://a/b',
  ),
  fc.constantFrom<Json[]>(
    'user',
    'assistant',
    'system',
    'tool',
    'developer',
    'model',
    'function',
    'text',
    'image',
    'image_url',
    'tool_use',
    'tool_result',
    'thinking',
    'auto',
    'any',
    'none',
    'required',
    'high',
  ),
  fc.constantFrom<Json[]>(
    [],
    {},
    [[]],
    [null],
    [{}],
    [''],
    { type: 'text' },
    { type: 'x' },
    { role: 'user' },
    { type: 'object' },
    { $ref: '#' },
    { $ref: '#/a', a: { $ref: '#/a' } },
  ),
  fc.constantFrom<Json[]>(...Object.keys(raw)),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
);

const names = fc.constantFrom(
  'type',
  'role',
  'content',
  'text',
  'name',
  'id',
  'input',
  'parts',
  'tools',
  'model',
  'stream',
  'index',
  'delta',
  'usage',
  'error',
  '__proto__',
  'constructor',
  'toString',
  '0',
  '',
);

interface Change {
  readonly at: number;
  readonly how: 'set' | 'remove' | 'repeat' | 'add' | 'wrap' | 'empty';
  readonly value: Json;
  readonly name: string;
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('set', 'set', 'set', 'remove', 'repeat', 'add', 'wrap', 'empty'),
  value: odd,
  name: names,
});

type Position =
  | { readonly holder: Json[]; readonly key: number }
  | { readonly holder: { [key: string]: Json }; readonly key: string };

function places(value: Json, found: Position[] = []): Position[] {
  if (Array.isArray(value)) {
    for (const key of value.keys()) {
      found.push({ holder: value, key });
      places(value[key] as Json, found);
    }
  } else if (value !== null && typeof value === 'object') {
    for (const key of Object.keys(value)) {
      found.push({ holder: value, key });
      places(value[key] as Json, found);
    }
  }
  return found;
}

function put(holder: { [key: string]: Json }, key: string, value: Json): void {
  Object.defineProperty(holder, key, { value, enumerable: true, writable: true, configurable: true });
}

function apply(body: Json, { at, how, value, name }: Change): void {
  const all = places(body);
  const position = all[at % Math.max(1, all.length)];
  if (position === undefined) return;
  const holder = position.holder as { [key: string]: Json };
  const key = position.key as string;
  const old = holder[key] as Json;
  if (how === 'set') put(holder, key, structuredClone(value));
  else if (how === 'wrap') put(holder, key, [old]);
  else if (how === 'empty') put(holder, key, Array.isArray(old) ? [] : typeof old === 'string' ? '' : {});
  else if (how === 'remove') {
    if (Array.isArray(position.holder)) position.holder.splice(position.key as number, 1);
    else delete holder[key];
  } else if (how === 'repeat') {
    if (Array.isArray(position.holder))
      position.holder.splice(position.key as number, 0, structuredClone(old));
    else put(holder, `${key}2`, structuredClone(old));
  } else if (Array.isArray(old)) old.push(structuredClone(value));
  else if (old !== null && typeof old === 'object') put(old, name, structuredClone(value));
}

/** JSON texts near the given one: a few members changed, removed, repeated or added. */
export function near(body: unknown, most = 4): fc.Arbitrary<string> {
  return fc.array(change, { minLength: 0, maxLength: most }).map((changes) => {
    const copy = structuredClone(body) as Json;
    for (const one of changes) apply(copy, one);
    return written(copy);
  });
}

/** The text of a value, with the marks of `raw` written as what they stand for. */
function written(value: Json): string {
  return JSON.stringify(value).replaceAll(/"(@[a-z-]+)"(?!:)/g, (text, mark: string) => raw[mark] ?? text);
}

/** Texts that are invalid or unusual JSON. */
export const noise: fc.Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 5 }).map((text) => Buffer.from(text)),
  fc.json({ maxDepth: 5 }).chain((text) => fc.nat(text.length).map((at) => Buffer.from(text.slice(0, at)))),
  fc.string({ unit: fc.constantFrom(...'{}[]":,\\ \n019eE+-.tfn') }).map((text) => Buffer.from(text)),
);
