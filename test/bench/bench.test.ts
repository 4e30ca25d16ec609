import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { bodyOf, headersOf, wires } from './inputs.ts';
import { hasProc } from './proc.ts';
import { roomShares } from './profile.ts';
import { inputs, sessionOf, type InputName } from './sessions.ts';

const bench = fileURLToPath(new URL('bench.ts', import.meta.url));

it.skipIf(!hasProc)(
  'npm run bench shows what a small chat and a translated stream cost beside raw',
  async () => {
    const words = ['--rounds', '1', '--seconds', '0.1', '--warm', '0.1', '--steady', '0.1'];
    const child = spawn(
      process.execPath,
      ['--conditions=sluice-source', bench, ...words, '--only', 'small', '--only', 'paced:messages>chat'],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const [shown, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(problems.replaceAll('.', '').trim()).toBe('');
    const lines = shown.split('\n');
    for (const name of ['small: small chat', 'paced:messages>chat: paced stream']) {
      const first = lines.findIndex((line) => line.startsWith(name));
      expect(lines[first]).toMatch(/ raw +[\d.,]+ us +[\d.,]+ (?:call|chunk)s$/);
      expect(lines[first + 1]).toMatch(/^ +sluice +[\d.,]+ us +[\d.]+ \[[\d.]+-[\d.]+\] /);
    }
    expect(shown.match(/<= 1\.6/g)).toHaveLength(2);
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
