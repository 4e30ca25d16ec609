import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { bodyOf, headersOf, wires } from './inputs.ts';
import { hasProc } from './proc.ts';
import { jsonStyles, writeJson } from './json-styles.ts';
import { roomShares } from './profile.ts';
import { varieties } from './report.ts';
import { requestOf } from './requests.ts';
import { Runner } from './rounds.ts';
import type { Scenario } from './scenarios.ts';
import { inputs, sessionOf, type InputName } from './sessions.ts';
import type { Stage } from './stage.ts';
import type { Target } from './targets.ts';
import type { IdStyle } from './tool-ids.ts';

const bench = fileURLToPath(new URL('bench.ts', import.meta.url));

it.skipIf(!hasProc)(
  'npm run bench shows what a small chat and a translated stream cost beside raw, with limits and sent otherwise',
  async () => {
    const words = ['--rounds', '1', '--seconds', '0.1', '--warm', '0.1', '--steady', '0.1'];
    const child = spawn(
      process.execPath,
      [
        '--conditions=sluice-source',
        bench,
        ...words,
        ...['small', 'paced:messages>chat', 'small:limited', 'small+gzip'].flatMap((name) => [
          '--only',
          name,
        ]),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const [shown, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(problems.replaceAll('.', '').trim()).toBe('');
    const lines = shown.split('\n');
    for (const name of [
      'small: small chat',
      'small:limited: small chat',
      'paced:messages>chat: paced stream',
    ]) {
      const first = lines.findIndex((line) => line.startsWith(name));
      expect(lines[first]).toMatch(/ raw +[\d.,]+ us +[\d.,]+ (?:call|chunk)s$/);
      expect(lines[first + 1]).toMatch(/^ +sluice +[\d.,]+ us +[\d.]+ \[[\d.]+-[\d.]+\] /);
    }
    // In the short rounds and in the long ones.
    expect(shown.match(/<= 2 /g)).toHaveLength(2);
    expect(shown).toMatch(/^small\+simplest: .* sluice +[\d.,]+ us +[\d.]+$/m);
    expect(shown).toMatch(
      /^small\+gzip: .* sluice .* [\d.]+ \[[\d.]+-[\d.]+\] +(?:yes|no: the body is decompressed)$/m,
    );
  },
);

it.each(
  Object.entries({ small: 1, plain: 100, turn1: 55, turn30: 250, turn100: 800 }) as [InputName, number][],
)(
  'the input %s has about %i KB in each format, and no fewer headers than libraries send',
  (name, kilobytes) => {
    for (const wire of wires) {
      const body = bodyOf(wire, sessionOf(name), 'some-model');
      expect(Buffer.byteLength(body) / 1000).toBeGreaterThan(kilobytes * 0.9);
      expect(Buffer.byteLength(body) / 1000).toBeLessThan(kilobytes * 1.1);
      expect(Object.keys(headersOf(wire, 'sk-some-key')).length).toBeGreaterThanOrEqual(7);
    }
    expect(inputs[name].title).toContain(`${kilobytes} KB`);
  },
);

it('sessions of agents have the tools, messages and escapes that they are named for', () => {
  for (const [name, messages] of [
    ['turn1', 1],
    ['turn30', 77],
    ['turn100', 285],
  ] as const) {
    const session = sessionOf(name);
    expect(session.turns).toHaveLength(messages);
    expect(session.tools).toHaveLength(12);
    const body = bodyOf('chat', session, 'some-model');
    expect(body.split('\\').length / body.length).toBeGreaterThan(0.01);
    // Each call has its result next, as providers demand.
    for (const [index, turn] of session.turns.entries())
      if (turn.role === 'assistant' && turn.call !== undefined)
        expect(session.turns[index + 1]).toMatchObject({ role: 'tool', id: turn.call.id });
  }
});

it('a profile is divided among rooms and libraries, and what Node and V8 do counts as done for who asked', () => {
  const frame = (functionName: string, url = '') => ({ functionName, url });
  const file = (path: string) => new URL(`../../${path}`, import.meta.url).href;
  const profile = {
    startTime: 1_000,
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: [2, 3, 5, 8, 9] },
      { id: 2, callFrame: frame('(idle)') },
      { id: 3, callFrame: frame('send', file('core/front/reply.ts')), children: [4] },
      { id: 4, callFrame: frame('writeLatin1String') },
      {
        id: 5,
        callFrame: frame('decode', file('core/formats/messages/codec.ts')),
        children: [6, 7],
      },
      { id: 6, callFrame: frame('wasm-function[1]', 'wasm://wasm/0001') },
      {
        id: 7,
        callFrame: frame('next', file('node_modules/rxjs/dist/cjs/internal/Subscriber.js')),
      },
      { id: 8, callFrame: frame('(garbage collector)') },
      { id: 9, callFrame: frame('parserOnHeadersComplete', 'node:_http_common') },
    ],
    // The first is before the time that is asked for, the last behind it.
    samples: [3, 2, 3, 4, 5, 6, 7, 8, 9, 3],
    timeDeltas: [500, 500, 100, 100, 100, 200, 200, 200, 100, 5_000],
  };
  expect(Object.fromEntries(roomShares(profile, 1_600, 3_100))).toEqual({
    'core/front': 0.1,
    'writes to sockets': 0.1,
    'core/formats/messages': expect.closeTo(0.3, 5),
    'library: rxjs': 0.2,
    'V8: garbage collection': 0.2,
    'node: HTTP': 0.1,
  });
});

it.each([
  ['openai', /^call_[0-9A-Za-z]{24}$/],
  ['anthropic', /^toolu_01[1-9A-HJ-NP-Za-km-z]{22}$/],
  ['gemini', /^function-call-[1-9]\d{18}$/],
  ['mistral', /^[0-9A-Za-z]{9}$/],
  ['vllm', /^chatcmpl-tool-[0-9a-f]{16}$/],
  ['ollama', /^call_[0-9a-z]{8}$/],
  ['deepseek', /^call_00_[0-9A-Za-z]{24}$/],
] as const)(
  'a session with ids of %s has one of them for each call, and makes the same calls',
  (style, id) => {
    const ids = callIds('turn100', style);
    for (const one of ids) expect(one).toMatch(id);
    expect(new Set(ids).size).toBe(ids.length);
    const without = (of: IdStyle) =>
      sessionOf('turn100', of).turns.map((turn) =>
        turn.role === 'assistant' ? [turn.text, turn.call?.name, turn.call?.input] : [],
      );
    expect(without(style)).toEqual(without('simple'));
  },
);

it('a long session with ids of OpenAI has one without a digit, and one with ids of Kimi counts', () => {
  expect(callIds('turn100', 'openai').filter((id) => !/\d/.test(id))).not.toEqual([]);
  for (const [index, id] of callIds('turn100', 'kimi').entries())
    expect(id).toMatch(new RegExp(`^functions\\.[a-z_]+:${index}$`));
});

function callIds(name: InputName, style: IdStyle): readonly string[] {
  return sessionOf(name, style).turns.flatMap((turn) =>
    turn.role === 'assistant' && turn.call !== undefined ? turn.call.id : [],
  );
}

it.each(jsonStyles)('JSON in the style of %s says the same', (style) => {
  const value = { a: [1, 'é – 世 <b>&\'="/\n', []], b: { c: null, d: true }, e: {} };
  expect(JSON.parse(writeJson(value, style))).toEqual(value);
});

it('JSON is written as the library of each language writes it', () => {
  const value = { a: [1, 'é<'], b: "/'" };
  expect(jsonStyles.map((style) => writeJson(value, style))).toEqual([
    '{"a":[1,"é<"],"b":"/\'"}',
    '{"a": [1, "\\u00e9<"], "b": "/\'"}',
    '{"a":[1,"é\\u003c"],"b":"/\'"}\n',
    '{"a":[1,"é\\u003c"],"b":"/\\u0027"}',
    '{"a":[1,"\\u00e9<"],"b":"\\/\'"}',
    '{\n  "a": [\n    1,\n    "é<"\n  ],\n  "b": "/\'"\n}',
  ]);
});

it('a fresh session has ids that no call had before, each the same in the call and in its result', () => {
  const shot = { url: '', key: 'k', wire: 'chat', input: 'turn30', model: 'm', stream: false } as const;
  const sent = () => String(requestOf({ ...shot, manner: { ids: 'simple', fresh: true } }).body);
  const idsIn = (body: string) => [...body.matchAll(/"(call_[0-9a-z]{24})"/g)].map(([, id]) => id);
  const [one, other] = [idsIn(sent()), idsIn(sent())];
  expect(one).toHaveLength(2 * callIds('turn30', 'simple').length);
  expect(new Set([...one, ...other]).size).toBe(one.length);
});

it('the table of varieties names each row that costs more than 1.3 times the simplest, with its reason', () => {
  const scenario = (name: string, because?: string): Scenario => ({
    name,
    title: name,
    group: 'variety',
    unit: 'call',
    simplest: 'first',
    ...(because === undefined ? {} : { because }),
    run: () => Promise.reject(new Error('not run')),
  });
  const measured = (cpu: number) => ({ cpu, perSecond: 1, failures: [] });
  const round = (cpu: number) => ({ raw: measured(100), sluice: measured(cpu) });
  const rows = varieties(
    [scenario('first'), scenario('near'), scenario('far'), scenario('known', 'it is longer')],
    new Map(
      Object.entries({ first: [round(200)], near: [round(250)], far: [round(300)], known: [round(300)] }),
    ),
  );
  expect(rows.map((row) => row.at(-1))).toEqual(['', 'yes', 'NO', 'no: it is longer']);
});

it.each([
  {
    perSecond: 10_000,
    costs: [5],
    calls: 100_000,
    why: 'four batches in a row that are not cheaper, in each of two warm-ups',
  },
  {
    perSecond: 250,
    costs: [5],
    calls: 6_000,
    why: 'at least 6,000 calls, also where batches get no cheaper',
  },
  { perSecond: 1, costs: [5], calls: 30, why: 'no more seconds than it may' },
  {
    perSecond: 10_000,
    costs: [5, 4, 3, 2],
    calls: 130_000,
    why: 'further batches as long as they get cheaper',
  },
])('a warm-up has $why', async ({ perSecond, costs, calls }) => {
  let batches = 0;
  const scenario: Scenario = {
    name: 'one',
    title: 'one',
    group: 'native',
    unit: 'call',
    run: () => {
      const cpu = costs[Math.min(batches, costs.length - 1)] ?? 0;
      batches += 1;
      return Promise.resolve({ cpu, perSecond, failures: [] });
    },
  };
  const runner = new Runner({} as Stage, [{ name: 'sluice' } as Target]);
  await runner.interleaved([scenario], { warm: 30, rounds: 0, seconds: 1 });
  expect(runner.warmUps.reduce((sum, one) => sum + one, 0)).toBe(calls);
});
