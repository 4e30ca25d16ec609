import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tries } from '../support/tries.ts';
import {
  createLog,
  forgetSecret,
  hideEndingSecret,
  hideSecret,
  maskSecrets,
  type Log,
} from '../../core/log.ts';

function written(write: (log: Log) => void, level = 'debug'): string {
  const lines: string[] = [];
  write(createLog(level, { write: (line) => void lines.push(line) }));
  return lines.join('');
}

describe('a line of the log', () => {
  test('is as pino itself writes it, whatever its fields are', () => {
    const name = fc.constantFrom('a', 'msg', 'level', 'url', 'key', 'toString', 'ünusual "name"');
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(undefined, NaN, Infinity, -0, () => {}, Symbol('x'), 12n, 'ä"\n', new Date(0)),
      fc.string({ unit: 'binary', maxLength: 9000 }),
      fc.array(fc.constantFrom(undefined, NaN, 1, 'x')),
      fc.record({ message: fc.string(), error: fc.string() }),
    );
    fc.assert(
      fc.property(
        fc.dictionary(name, value),
        fc.constantFrom('', 'a %s sentence', 'quoted "\u0000"', 'x'.repeat(5000)),
        fc.boolean(),
        (fields, text, isChild) => {
          const line = (...args: readonly string[]): string =>
            written((log) => {
              const own = isChild ? log.child({ worker: 1, list: ['a'] }) : log;
              (own.warn as (...args: unknown[]) => void)(fields, ...args);
            }).replace(/"time":"[^"]*"/, '');
          expect(line(text)).toBe(line('%s', text));
        },
      ),
      { numRuns: tries(1_000) },
    );
  });
});

describe('the log masks', () => {
  const shapes = {
    'our own keys, and those of many providers': 'sk-abcdefghijklmnop0123',
    'tokens of the admin API': 'sla_abcdefghijklmnopabcdefghijklmnopabcdefgh',
    'keys with dashes in them': 'sk-ant-api03-abc_def-0123456789',
    'keys of search and map consoles': 'AIzaSyA1234567890abcdefghijklmnopqrstu',
    'bearer tokens': 'Bearer abcdef.123456',
    'keys of a word and a long run': 'xyz-A1b2C3d4E5f6G7h8I9j0K1',
  };
  test.each(Object.entries(shapes))('%s', (_name, secret) => {
    const tail = secret.slice(-8);
    expect(maskSecrets(`before ${secret} after`)).toMatch(/^before .*…( after)$/);
    const line = written((log) => {
      log.warn({ url: `https://x.test/${secret}`, list: [secret] }, `a sentence with ${secret}`);
      log.error({ error: new Error(`refused ${secret}`, { cause: new Error(`inner ${secret}`) }) }, 'failed');
    });
    expect(line).toContain('inner');
    expect(line).not.toContain(tail);
  });

  test('keys to their end, however long they are', () => {
    const long = 'a1B'.repeat(5_000_000);
    for (const start of ['Bearer ', 'sk-', 'AKIA', 'xyz-', '?key='])
      expect(maskSecrets(`before ${start}${long} after`).length).toBeLessThan(40);
    expect(maskSecrets('sk-'.repeat(3_000_000))).toBe('sk-…');
  });

  test('as one pattern would that the engine has no room for', () => {
    const words = ['Bearer ', 'sk-', 'gsk_', 'AKIA', 'ya29.', '&key=', '?key=', 'xyz-', 'a_', 'A1b2C3d4'];
    const others = [
      'a'.repeat(1000),
      'ABCDEFGHIJKL',
      '0123',
      'abc',
      '.',
      '/',
      '-',
      '=',
      '"',
      '\\',
      ' ',
      '\n',
      'é',
    ];
    const piece = fc.constantFrom(...words, ...others);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        const plain =
          /\b(?:(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}|(sk-|sla_|gsk_|pplx-|nvapi-|hf_|AIza|AKIA|ya29\.)[A-Za-z0-9._~+/-]{8,}|([a-z]{1,8}[-_])(?=[A-Za-z0-9]{0,999}\d)(?=[A-Za-z0-9]{0,999}[A-Z])[A-Za-z0-9]{20,})|([?&]key=)[^&\s"\\]+/g;
        expect(maskSecrets(text)).toBe(text.replaceAll(plain, '$1$2$3$4…'));
      }),
      { numRuns: tries(20_000) },
    );
  });

  test('keys in addresses', () => {
    expect(maskSecrets('GET /v1?alt=sse&key=abc123&x=1')).toBe('GET /v1?alt=sse&key=…&x=1');
  });

  test('fields that hold secrets by their name', () => {
    const line = written((log) =>
      log.info(
        {
          key: 'plain-secret',
          options: { password: 'plain-secret' },
          headers: { authorization: 'plain-secret' },
        },
        'x',
      ),
    );
    expect(line).not.toContain('plain-secret');
  });

  test('secrets of this process, whatever they look like', () => {
    hideSecret('correct horse "battery"');
    hideSecret('short');
    const line = written((log) =>
      log.child({ channel: 'one' }).info({ detail: 'sent correct horse "battery"' }, 'a short walk'),
    );
    expect(line).not.toContain('horse');
    expect(line).toContain('a short walk');
  });

  test('secrets that have ended, until each of those who hid them has forgotten them', () => {
    const twice = 'a-tune-of-two-owners';
    for (const hide of [hideEndingSecret, hideEndingSecret, forgetSecret]) hide(twice);
    expect(maskSecrets(twice)).toBe('…');
    forgetSecret(twice);
    expect(maskSecrets(twice)).toBe(twice);
    const lasting = 'a-tune-for-good';
    for (const hide of [hideEndingSecret, hideSecret, forgetSecret, forgetSecret]) hide(lasting);
    expect(maskSecrets(lasting)).toBe('…');
  });

  test('nothing else', () => {
    for (const text of [
      'task-12345678',
      'req_0123456789abcdef01234567',
      'key_AbCdEfGh12345678',
      'claude-opus-4-5-20251101',
      'a risk-assessment',
    ]) {
      expect(maskSecrets(text)).toBe(text);
    }
  });
});

describe('a line', () => {
  test('is JSON with time, level as a word, fields and sentence', () => {
    const line = JSON.parse(
      written((log) => log.child({ plugin: 'quota' }).warn({ count: 2 }, 'nearly spent')),
    ) as object;
    expect(line).toEqual({
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      level: 'warn',
      plugin: 'quota',
      count: 2,
      msg: 'nearly spent',
    });
  });

  test('tells of an error where it happened, its code and its cause', () => {
    const error = Object.assign(new TypeError('broken', { cause: new Error('deeper') }), {
      code: 'E_BROKEN',
    });
    expect(JSON.parse(written((log) => log.error({ error }, 'x')))).toMatchObject({
      error: {
        name: 'TypeError',
        code: 'E_BROKEN',
        message: 'broken',
        cause: 'Error: deeper',
        stack: expect.stringContaining('log.test.ts'),
      },
    });
    expect(JSON.parse(written((log) => log.error({ error: 'only text' }, 'x')))).toMatchObject({
      error: 'only text',
    });
  });

  test('below the level is not written', () => {
    expect(written((log) => log.info('quiet'), 'warn')).toBe('');
    expect(written((log) => log.fatal('loud'), 'silent')).toBe('');
  });
});

describe('a line stays short, whatever a client has sent', () => {
  const long = 'm'.repeat(10_000_000);
  const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`name${index}`, long]));
  let deep: object = { end: long };
  for (let depth = 0; depth < 1000; depth += 1) deep = { deep };
  const circle: Record<string, unknown> = { model: 'm' };
  circle['itself'] = circle;
  const causes = { error: new Error(long, { cause: new TypeError(long) }) };

  const fields: Readonly<Record<string, object>> = {
    'a long text': { model: long },
    'a text of characters that JSON spells out': { model: '\0'.repeat(1_000_000) },
    'many long texts': wide,
    'a long list': { losses: Array.from({ length: 100_000 }, () => long) },
    'a list of lists': { lists: Array.from({ length: 1000 }, () => Array.from({ length: 1000 }, () => 'x')) },
    'a long name': { [long]: 1 },
    'something deep': deep,
    'something that holds itself': circle,
    bytes: { body: Buffer.alloc(1_000_000) },
    'an error': causes,
    'an error in a list': { errors: [causes.error] },
    'what says of itself how it is written': { url: { toJSON: () => wide } },
    'a large number': { tokens: 10n ** 20_000n },
  };
  test.each(Object.keys(fields))('%s', (name) => {
    const given = fields[name] ?? {};
    const other = written((log) => log.warn(given, 'a call was answered'));
    const child = written((log) => log.child(given as Record<string, unknown>).warn('a call was answered'));
    for (const line of [other, child]) {
      expect(line.length).toBeLessThan(120_000);
      expect(JSON.parse(line)).toMatchObject({ msg: 'a call was answered' });
    }
  });

  test('a sentence, and an error without one', () => {
    for (const line of [
      written((log) => log.warn({}, long)),
      written((log) => log.warn(long)),
      written((log) => log.warn(new Error(long))),
    ]) {
      expect(line.length).toBeLessThan(30_000);
      expect((JSON.parse(line) as { msg: string }).msg).toMatch(/^m{4096}… \(10000000 characters\)$/);
    }
  });

  test('and what is short is written as it is', () => {
    const given = { id: 'req_1', losses: ['a', 'b'], usage: { input: 1, nothing: null }, gone: undefined };
    expect(JSON.parse(written((log) => log.info(given, 'x')))).toMatchObject({
      id: 'req_1',
      losses: ['a', 'b'],
      usage: { input: 1, nothing: null },
    });
  });
});
