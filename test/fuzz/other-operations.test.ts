/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  bodiesFor,
  everyDoor,
  hangUp,
  modelField,
  modelsFor,
  namesNoField,
  openUploads,
  post,
  readRefusal,
  startPlayground,
  type Door,
  type Got,
  type Playground,
} from './_other-operations.ts';
import { near, noise } from './_mutate.ts';

const seed = 20_261_120;
const doors = await everyDoor();

let ground: Playground;
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
const statuses = new Map<number, number>();

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  ground = await startPlayground({ limits: { depth: 100, values: 100_000, body: 4 * 1024 * 1024 } });
});
afterAll(async () => {
  await ground.close();
  hangUp();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
  const counts = [...statuses].toSorted().map(([status, count]) => `${count} × ${status}`);
  console.log(`fuzzed bodies of other operations, seed ${seed}: ${counts.join(', ')}`);
});

/** A client’s garbage is the client’s fault: told in its own words, and no failure of the gateway or of a provider. */
function expectSane({ format }: Door, answer: Got): void {
  const lines = ground.gateway.lines.splice(0);
  statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  expect([200, 400, 403, 404, 413, 415, 503], answer.text).toContain(answer.status);
  expect(answer.ended).toBe(true);
  if (answer.status === 200)
    expect(answer.text, 'an error of the gateway inside the stream').not.toContain('internal_error');
  else {
    const { param, message } = readRefusal(format.name, answer);
    const isOfField = answer.status === 400 && !/^The (body|request has no body)/.test(message);
    if (isOfField && !namesNoField.has(format.name)) expect(param, answer.text).toBeTypeOf('string');
  }
  const failures = lines.filter(({ level }) => level === 'error' || level === 'fatal');
  expect(failures.map((line) => JSON.stringify(line))).toEqual([]);
  expect(crashes.splice(0)).toEqual([]);
  for (const { method, headers, body, url } of ground.upstream.requests) {
    if (method !== 'POST' || headers['content-type'] !== 'application/json') continue;
    // Whatever the client wrote, no other model is asked than the one that it may use.
    const { model } = JSON.parse(body.toString()) as { readonly model?: unknown };
    expect([url, model]).not.toEqual([url, 'stolen']);
  }
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
}

/** Fields that read like notes of the gateway’s own, and texts that are long, deep or hardly text. */
const extremes = [
  '"$single":true',
  '"$purpose":{"model":"stolen","input":"stolen"}',
  '"$limits":{"model":"stolen","query":"stolen"}',
  '"$format":true',
  '"$encoding":{"a":1}',
  '"$raw":{"model":"stolen"}',
  '"$parts":[["model","stolen"],5]',
  '"$images":[5,{"image_url":5}]',
  '"$text":5',
  '"__proto__":{"polluted":true}',
  '"toString":1',
  `"input":"${'x'.repeat(200_000)}"`,
  `"prompt":"${'😀'.repeat(20_000)}"`,
  `"query":"\\ud83d"`,
  '"input":["\\ud83d","\\u0000"]',
  `"voice":"${'v'.repeat(100_000)}"`,
  `"${'k'.repeat(20_000)}":1`,
  `"deep":${'['.repeat(95)}${']'.repeat(95)}`,
  `"deep":${'{"a":'.repeat(120)}1${'}'.repeat(120)}`,
  `"documents":[${Array(3000).fill('"a"').join(',')}]`,
  `"rank_fields":[${Array(3000).fill('"a"').join(',')}]`,
  '"dimensions":9007199254740991',
  '"dimensions":10000000',
  '"outputDimensionality":1e12',
  '"n":1e9',
  '"top_n":9007199254740991',
  '"speed":1e-400',
  '"size":"99999x99999"',
  '"seconds":"1e999"',
];

const modelsOf = (door: Door): readonly string[] => ['demo', ...modelsFor(door.operation)];

/** The member of a body that names this model, where the body does. */
function named(door: Door, model: string): Record<string, string> {
  const field = modelField(door);
  return field === undefined ? {} : { [field]: model };
}

/** A body near a sound one, with the model’s name put first where the body names it. */
function bodyNear(door: Door): fc.Arbitrary<{ readonly model: string; readonly text: string }> {
  return fc
    .tuple(
      fc.constantFrom(...modelsOf(door), 'no-such-model'),
      fc.constantFrom(...bodiesFor(door)).chain((body) => near(body, 3)),
      fc.option(fc.constantFrom(...extremes), { freq: 3 }),
    )
    .map(([model, text, extreme]) => {
      const first = JSON.stringify(named(door, model)).slice(1, -1);
      const rest = text.slice(1, -1);
      const members = [
        ...(first === '' ? [] : [first]),
        ...(rest === '' ? [] : [rest]),
        ...(extreme === null ? [] : [extreme]),
      ];
      return { model, text: `{${members.join(',')}}` };
    });
}

test('there are paths to try', () => {
  expect(doors.length).toBeGreaterThan(15);
});

describe.each(doors.map((door) => [door.name, door] as const))('%s', (_name, door) => {
  test('bodies near sound ones are answered, or refused with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(bodyNear(door), async ({ model, text }) => {
        const answer = await post(ground, door.path(model), text);
        expectSane(door, answer);
        if (!door.takesJson) expect(answer.status).toBe(415);
      }),
      { seed, numRuns: door.takesJson ? 200 : 5, endOnFailure: false },
    );
  }, 120_000);

  test.runIf(door.takesJson)(
    'what is extreme is answered, or refused with a reason',
    async () => {
      for (const model of modelsOf(door)) {
        for (const [index, extreme] of extremes.entries()) {
          const all = bodiesFor(door);
          const body = { ...named(door, model), ...all[index % all.length] };
          const text = `${JSON.stringify(body).slice(0, -1)},${extreme}}`;
          // oxlint-disable-next-line no-await-in-loop -- one after the other, so that a failure names its cause
          expectSane(door, await post(ground, door.path(model), text));
        }
      }
    },
    120_000,
  );

  test('noise is refused with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(noise, async (bytes) => {
        const answer = await post(ground, door.path('demo'), bytes);
        expectSane(door, answer);
        expect(answer.status).not.toBe(200);
      }),
      { seed, numRuns: 25 },
    );
  }, 60_000);

  const sound = modelsOf(door).flatMap((model) => bodiesFor(door).map((body) => [model, body] as const));
  test.runIf(door.takesJson)(
    'sound bodies are still answered, or refused as what the model does not do',
    async () => {
      const answers = await Promise.all(
        sound.map(([model, body]) =>
          post(ground, door.path(model), JSON.stringify({ ...named(door, model), ...body })),
        ),
      );
      for (const answer of answers) expectSane(door, answer);
      // A video that is made anew must be there.
      const expected = door.route.path.includes(':id') ? 404 : 200;
      expect(answers.map(({ status }) => status)).toContain(expected);
      expect(openUploads()).toEqual([]);
    },
  );
});
