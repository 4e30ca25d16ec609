import { describe, expect, test } from 'vitest';
import { createLog, hideSecret, maskSecrets, type Log } from '../../core/log.ts';

function written(write: (log: Log) => void, level = 'debug'): string {
  const lines: string[] = [];
  write(createLog(level, { write: (line) => void lines.push(line) }));
  return lines.join('');
}

describe('the log masks', () => {
  const shapes = {
    'our own keys, and those of many providers': 'sk-abcdefghijklmnop0123',
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
