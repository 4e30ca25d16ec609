/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { tmpdir } from 'node:os';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  allEndpoints,
  formsFor,
  hangUp,
  modelsFor,
  openUploads,
  picture,
  post,
  readRefusal,
  recording,
  startPlayground,
  written,
  type Endpoint,
  type Got,
  type Part,
  type Playground,
} from './_other-operations.ts';
import { selectRotating, tries } from '../support/tries.ts';
import { uploadNames } from '../support/uploads.ts';

const seed = 20_261_120;
const endpoints = (await allEndpoints()).filter(({ takesForms }) => takesForms);
const fileLimit = 100_000;

let ground: Playground;
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
const statuses = new Map<number, number>();

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  ground = await startPlayground({
    // Every file goes to the disk.
    limits: { audio: fileLimit, image: fileLimit, video: fileLimit, inMemory: 0, files: 10, fields: 100 },
  });
});
afterAll(async () => {
  await ground.close();
  hangUp();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
  const counts = [...statuses].toSorted().map(([status, count]) => `${count} × ${status}`);
  console.log(`fuzzed forms, seed ${seed}: ${counts.join(', ')}`);
});

function expectSane({ format }: Endpoint, answer: Got, what: string): void {
  const failures = ground.gateway.lines
    .splice(0)
    .filter(({ level }) => level === 'error' || level === 'fatal');
  const report = `${what}\n→ ${answer.status} ${answer.text.slice(0, 500)}`;
  statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  expect([200, 400, 403, 404, 413, 415, 503], report).toContain(answer.status);
  expect(answer.ended, report).toBe(true);
  if (answer.status === 200) expect(answer.text, report).not.toContain('internal_error');
  else {
    const { message, param } = readRefusal(format.name, answer);
    const isOfField =
      answer.status === 400 &&
      !/^(The form|The body|The request has no body|The name of a form field|A part of the form|Content-Type)/.test(
        message,
      );
    if (isOfField) expect(param, report).toBeTypeOf('string');
    expect(message, report).not.toContain(tmpdir());
  }
  expect(
    failures.map((line) => JSON.stringify(line)),
    report,
  ).toEqual([]);
  expect(crashes.splice(0), report).toEqual([]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
}

async function expectNothingLeft(): Promise<void> {
  await expect.poll(openUploads).toEqual([]);
  await expect.poll(uploadNames).toEqual([]);
}

const modelsOf = (endpoint: Endpoint): readonly string[] => ['demo', ...modelsFor(endpoint.operation)];
const withModel = (endpoint: Endpoint, model: string, parts: readonly Part[]): readonly Part[] =>
  endpoint.route.path.includes(':id') ? parts : [{ name: 'model', value: model }, ...parts];

/** A part as it stands on the wire; `head` are its lines without the blank one. */
interface Raw {
  readonly head: string;
  readonly value: Buffer;
}

function rawOf({ name, value, filename, type }: Part): Raw {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  const kind = type === undefined ? '' : `\r\ncontent-type: ${type}`;
  return { head: `content-disposition: form-data; name="${name}"${file}${kind}`, value: Buffer.from(value) };
}

function bytesOf(parts: readonly Raw[], boundary = 'x'): Buffer {
  return Buffer.concat([
    ...parts.flatMap(({ head, value }) => [
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`, 'latin1'),
      value,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
}

const oddHeads = [
  'content-disposition: form-data',
  'content-disposition: form-data; name',
  'content-disposition: form-data; name=""',
  'content-disposition: form-data; filename="a.wav"',
  'content-disposition: form-data; name=""; filename="a.wav"',
  'content-disposition: attachment; name="file"; filename="a.wav"',
  'content-disposition:',
  'x-nothing: 1',
  '',
  'content-disposition: form-data; name="file"; filename=""',
  'content-disposition: form-data; name="file"; filename="../../etc/x.wav"',
  'content-disposition: form-data; name="file"; filename="a\0b.wav"',
  'content-disposition: form-data; name="file"; filename="a\\"b.wav"',
  'content-disposition: form-data; name="file"; filename*=UTF-8\'\'%zz%00.wav',
  'content-disposition: form-data; name="file"; filename*=klingon\'\'%41.wav',
  `content-disposition: form-data; name="file"; filename="${'n'.repeat(10_000)}.wav"`,
  `content-disposition: form-data; name="${'n'.repeat(10_000)}"`,
  `content-disposition: form-data; name="${'n'.repeat(10_000)}"; filename="a.wav"`,
  `content-disposition: form-data; name="file"\r\nx-much: ${'y'.repeat(20_000)}`,
  [
    'content-disposition: form-data; name="file"',
    ...Array.from({ length: 100 }, (_, at) => `x-${at}: 1`),
  ].join('\r\n'),
  'content-disposition: form-data; name="file"\r\ncontent-disposition: form-data; name="model"',
  'content-disposition: form-data; name="file"\r\ncontent-type: text/plain; charset=utf-16le',
  'content-disposition: form-data; name="prompt"\r\ncontent-type: text/plain; charset',
  'content-disposition: form-data; name="prompt"\r\ncontent-type: ;;;',
  'content-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: text/html\0\x7f',
  'content-disposition: form-data; name="file"\r\ncontent-transfer-encoding: base64',
  'content-disposition: form-data; name="file[]"; filename="a.wav"',
  'content-disposition: form-data; name="image[999]"; filename="a.png"',
  'content-disposition: form-data; name="model[]"',
  'content-disposition: form-data; name="__proto__"',
  'content-disposition: form-data; name="__proto__[]"',
  'content-disposition: form-data; name="constructor"',
  'content-disposition: form-data; name="toString"; filename="a.wav"',
  'content-disposition: form-data; name="$parts"',
  'content-disposition: form-data; name="stream"',
  'content-disposition: form-data; name="n"',
  'content-disposition: form-data; name="temperature"',
  'content-disposition: form-data; name="response_format"',
  'content-disposition: form-data; name="timestamp_granularities[]"',
  'content-disposition: form-data; name="metadata"',
  'content-disposition: form-data; name="size"',
];

const values = fc.oneof(
  fc.constantFrom(
    Buffer.from(''),
    Buffer.from('true'),
    Buffer.from('-1'),
    Buffer.from('1e999'),
    Buffer.from('stolen'),
    Buffer.from('{"model":"stolen"}'),
    Buffer.from('<html>not found</html>'),
    Buffer.from([0xff, 0xfe, 0x00]),
    Buffer.from('--x'),
    Buffer.from('\r\n--x-\r\n'),
    Buffer.alloc(fileLimit + 1, 0x41),
    Buffer.alloc(60_000, 0xff),
    recording,
    picture,
  ),
  fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
);

type Change =
  | { readonly how: 'put'; readonly at: number; readonly part: Raw }
  | { readonly how: 'remove' | 'repeat' | 'empty' | 'move' | 'as-text' | 'as-file'; readonly at: number }
  | { readonly how: 'value'; readonly at: number; readonly value: Buffer };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    how: fc.constant('put' as const),
    at: fc.nat(),
    part: fc.record({ head: fc.constantFrom(...oddHeads), value: values }),
  }),
  fc.record({
    how: fc.constantFrom('remove', 'repeat', 'empty', 'move', 'as-text', 'as-file'),
    at: fc.nat(),
  }),
  fc.record({ how: fc.constant('value' as const), at: fc.nat(), value: values }),
);

function changed(parts: readonly Raw[], changes: readonly Change[]): readonly Raw[] {
  const all = [...parts];
  for (const one of changes) {
    const at = one.at % Math.max(1, all.length);
    const old = all[at];
    if (one.how === 'put') all.splice(at, 0, one.part);
    else if (old === undefined) continue;
    else if (one.how === 'remove') all.splice(at, 1);
    else if (one.how === 'repeat') all.splice(at, 0, old);
    else if (one.how === 'empty') all[at] = { ...old, value: Buffer.alloc(0) };
    else if (one.how === 'move') all.push(...all.splice(at, 1));
    else if (one.how === 'as-text') all[at] = { ...old, head: old.head.replace(/; filename="[^"]*"/, '') };
    else if (one.how === 'as-file')
      all[at] = { ...old, head: old.head.replace(/(name="[^"]*")/, '$1; filename="f"') };
    else if (one.how === 'value') all[at] = { ...old, value: one.value };
  }
  return all;
}

/** Options for sending the bytes of a form; they are sent unchanged by default. */
interface Sending {
  readonly type: string;
  /** The share of the bytes that is sent. */
  readonly cut: number;
  readonly encoding: 'identity' | 'gzip' | 'gzip, but it is not';
}

const sending: fc.Arbitrary<Sending> = fc.record({
  type: fc.oneof(
    { weight: 8, arbitrary: fc.constant('multipart/form-data; boundary=x') },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        'multipart/form-data',
        'multipart/form-data; boundary=',
        'multipart/form-data; boundary',
        'multipart/form-data; boundary=""',
        'multipart/form-data; boundary="x"',
        'Multipart/Form-Data;boundary=x;charset=nonsense',
        'multipart/form-data; boundary=y',
        `multipart/form-data; boundary=${'b'.repeat(255)}`,
        `multipart/form-data; boundary=${'b'.repeat(5000)}`,
        'multipart/mixed; boundary=x',
        'application/json',
        'application/x-www-form-urlencoded',
        'text/plain',
      ),
    },
  ),
  cut: fc.oneof(
    { weight: 5, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
  ),
  encoding: fc.oneof(
    { weight: 8, arbitrary: fc.constant('identity' as const) },
    { weight: 1, arbitrary: fc.constantFrom('gzip' as const, 'gzip, but it is not' as const) },
  ),
});

function send(
  endpoint: Endpoint,
  model: string,
  bytes: Buffer,
  { type, cut, encoding }: Sending,
): Promise<Got> {
  const packed = encoding === 'gzip' ? gzipSync(bytes) : bytes;
  const sent = packed.subarray(0, Math.ceil(packed.length * cut));
  return post(ground, endpoint.path(model), sent, {
    'content-type': type,
    ...(encoding === 'identity' ? {} : { 'content-encoding': 'gzip' }),
  });
}

const plainly: Sending = { type: 'multipart/form-data; boundary=x', cut: 1, encoding: 'identity' };

test('there are paths to try', () => {
  expect(endpoints.length).toBeGreaterThan(4);
});

describe.each(endpoints.map((endpoint) => [endpoint.name, endpoint] as const))('%s', (_name, endpoint) => {
  test('forms near sound ones are answered, or refused with a reason, and nothing of them is left', async () => {
    const form = fc.record({
      model: fc.constantFrom(...modelsOf(endpoint), 'no-such-model'),
      parts: fc.constantFrom(...formsFor(endpoint)),
      changes: fc.array(change, { maxLength: 4 }),
      how: sending,
    });
    await fc.assert(
      fc.asyncProperty(form, async ({ model, parts, changes, how }) => {
        const raw = changed(withModel(endpoint, model, parts).map(rawOf), changes);
        const what = `${JSON.stringify(how)}\n${raw.map(({ head, value }) => `${head.slice(0, 200)} (${value.length})`).join('\n')}`;
        const answer = await send(endpoint, model, bytesOf(raw), how);
        expectSane(endpoint, answer, what);
        for (const { url, body } of ground.upstream.requests.splice(0))
          expect(/name="model"\r\n\r\nstolen/.test(body.toString('latin1')) && model !== 'stolen', url).toBe(
            false,
          );
      }),
      { seed, numRuns: tries(250), endOnFailure: false },
    );
    await expectNothingLeft();
  });

  test.each(oddHeads.map((head, nth) => [head.slice(0, 90), head, nth] as const))(
    'a part under “%s” is passed on, or refused with a reason',
    async (_head, head, nth) => {
      const [parts = []] = formsFor(endpoint);
      const forms = modelsOf(endpoint).flatMap((model) => {
        const sound = withModel(endpoint, model, parts).map(rawOf);
        return [Buffer.from('stolen'), recording].flatMap((value) => [
          { model, where: 'before', form: [{ head, value }, ...sound] },
          { model, where: 'behind', form: [...sound, { head, value }] },
        ]);
      });
      for (const { model, where, form } of selectRotating(forms, endpoints.indexOf(endpoint) + nth)) {
        // oxlint-disable-next-line no-await-in-loop -- one form after the other
        const answer = await send(endpoint, model, bytesOf(form), plainly);
        expectSane(endpoint, answer, `${where}, ${model}`);
      }
      await expectNothingLeft();
    },
  );

  test('a thousand parts, of either kind, are refused', async () => {
    const parts = ['a', 'file', 'image', 'model'].flatMap((name): Part[] => [
      { name, value: 'x' },
      { name, value: recording.subarray(0, 100), filename: 'a.wav' },
    ]);
    for (const part of selectRotating(parts, endpoints.indexOf(endpoint), 4)) {
      // oxlint-disable-next-line no-await-in-loop -- one form after the other
      const answer = await send(endpoint, 'demo', written(Array<Part>(1000).fill(part)), plainly);
      expectSane(endpoint, answer, JSON.stringify(part.name));
      expect(answer.status, answer.text).toBe(400);
    }
    await expectNothingLeft();
  });

  test('sound forms are still answered, or refused as what the model does not do', async () => {
    const answers: Got[] = [];
    for (const model of modelsOf(endpoint))
      for (const parts of formsFor(endpoint)) {
        // oxlint-disable-next-line no-await-in-loop -- one form after the other
        const answer = await send(endpoint, model, written(withModel(endpoint, model, parts)), plainly);
        expectSane(endpoint, answer, model);
        answers.push(answer);
      }
    expect(answers.map(({ status }) => status)).toContain(endpoint.route.path.includes(':id') ? 404 : 200);
    await expectNothingLeft();
  });
});
