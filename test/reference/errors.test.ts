import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { discover } from '../../core/config/discover.ts';
import { isObject } from '../../core/model/json.ts';
import { errorTable, GatewayError, type ErrorCode } from '../../core/sdk/errors.ts';
import type { Format } from '../../core/sdk/format.ts';
import { blockOf, commentsOf } from './_comments.ts';
import { generatedBy, pageOf, tableOf } from './_page.ts';

const core = join(import.meta.dirname, '../../core');
const { found } = await discover(join(core, 'formats'), 'folders');
const formats = new Map(found.map(({ value }) => [(value as Format).name, value as Format]));
const comments = commentsOf(
  blockOf(readFileSync(join(core, 'sdk/errors.ts'), 'utf8'), 'export const errorTable'),
);
const shown = ['chat-completions', 'messages', 'generate-content', 'converse'];

test('the reference has every error code, with its meaning and what each format makes of it', async () => {
  const codes = Object.keys(errorTable) as ErrorCode[];
  expect(codes.filter((code) => (comments.get(code) ?? '') === '')).toEqual([]);
  const page = pageOf(
    '# Error codes',
    generatedBy('test/reference/errors.test.ts', '[core/sdk/errors.ts](../../core/sdk/errors.ts)'),
    'Every failure has a code, which never changes. The code stands in the body of formats that have a field for it, in the log, in the usage log, in metrics and traces. The envelope is that of the format that the client speaks. Clients may retry where the third column says yes; where it says no, responses of 429 and of 500 and above have `x-should-retry: false`. A failure of a provider keeps the status and the words of the provider.',
    tableOf(
      ['code', 'status', 'retry', 'meaning'],
      codes.map((code) => [
        `\`${code}\``,
        String(errorTable[code].status),
        errorTable[code].retry ? 'yes' : 'no',
        comments.get(code) ?? '',
      ]),
    ),
    '## In the envelope of each format',
    'Other formats of OpenAI, and those of rerank, images, audio and video, have the envelope of chat completions unless their providers have one of their own.',
    tableOf(
      ['code', ...shown.map((name) => `\`${name}\``)],
      codes.map((code) => [`\`${code}\``, ...shown.map((name) => wordOf(name, code))]),
    ),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/errors.md');
});

/** The word by which clients of a format tell failures apart. */
function wordOf(name: string, code: ErrorCode): string {
  const reply = formats.get(name)?.errorReply(new GatewayError(code, 'It failed.'), 'req_1');
  const { body = {}, headers = {} } = reply ?? {};
  const error = isObject(body['error']) ? body['error'] : body;
  const word = name === 'generate-content' ? error['status'] : (error['type'] ?? headers['x-amzn-errortype']);
  return `\`${String(word)}\``;
}
