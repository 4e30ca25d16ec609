/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/no-standalone-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import type { ChatRequest } from '../../core/model/chat.ts';
import * as fc from 'fast-check';
import { Observable } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import type { Codec, ReplyContext, WireFrame } from 'sluice/channel-kit';
import type { Call, Target } from 'sluice/internal';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { decodeReply } from '../../plugins/translation/decode-reply.ts';
import { passReply } from '../../plugins/translation/pass-reply.ts';
import { allFormats, fixturesOf } from '../support/fixtures.ts';
import { checkLegal as chatLegal } from '../support/legal-chat-completions.ts';
import { checkLegal as generateLegal } from '../support/legal-generate-content.ts';
import { checkLegal as messagesLegal } from '../support/legal-messages.ts';
import { checkLegal as textLegal } from '../support/legal-text-completions.ts';
import { near, noise } from './_mutate.ts';
import { cuts, everything, tries } from '../support/tries.ts';

const seed = 20_261_120;
const formats = await allFormats();
const codecs: readonly Codec<ChatRequest>[] = formats.flatMap(({ codecs: { chat } }) =>
  chat === undefined ? [] : [chat],
);
const legal: Readonly<Record<string, (frames: WireFrame[]) => string[]>> = {
  'chat-completions': chatLegal,
  messages: messagesLegal,
  'generate-content': generateLegal,
  'text-completions': textLegal,
};

const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
beforeAll(() => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
});
afterAll(async () => {
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
  expect(crashes).toEqual([]);
});

interface Outcome {
  readonly events: GatewayEvent[];
  readonly ended: 'complete' | GatewayError;
}

type Make = (source: Observable<GatewayEvent>) => Observable<GatewayEvent>;

/** Returns the outcome of a response in these pieces. Rethrows errors that are not failures of a provider, because they are bugs. */
function outcomeOf(make: Make, pieces: readonly Buffer[], status = 200): Outcome {
  const events: GatewayEvent[] = [];
  let ended: Outcome['ended'] | undefined;
  let bug: unknown;
  const source = new Observable<GatewayEvent>((subscriber) => {
    subscriber.next({ type: 'answer', status, headers: {} });
    for (const bytes of pieces) subscriber.next({ type: 'bytes', bytes });
    subscriber.complete();
  });
  make(source).subscribe({
    next: (event) => events.push(event),
    error: (error: unknown) => {
      if (error instanceof GatewayError && error.origin === 'upstream') ended = error;
      else bug = error ?? new Error('Nothing was thrown.');
    },
    complete: () => {
      ended = 'complete';
    },
  });
  if (bug !== undefined) throw bug;
  if (ended === undefined) throw new Error('The answer never ended.');
  return { events, ended };
}

const decoding =
  (codec: Codec<ChatRequest>, stream: boolean): Make =>
  (source) =>
    decodeReply(source, { codec, traits: {}, stream });
const passing =
  (codec: Codec<ChatRequest>, stream: boolean): Make =>
  (source) =>
    passReply(source, {
      call: { codec, stream, askedModel: 'mine' } as Call,
      target: { model: 'theirs', traits: {} } as Target,
      swallowUsage: true,
    });

const context: ReplyContext = {
  model: 'm',
  body: { stream_options: { include_usage: true } },
  requestId: 'req_1',
  created: 1,
  inputEstimate: 7,
  drop: () => {},
};

/** A provider that repeats a call under its id says so to everybody; a count of infinity is no count (core/formats/messages/usage.ts). */
const tolerated = /tool id .* twice|counts \w+ as null/;

/**
 * Whatever the provider sent, each client reads a stream that is legal in its format, and its end tells the truth. A client of the
 * provider's own format gets the provider's own words back, the wrong ones too: `verbatim` names it.
 */
function expectLegalForAll({ events, ended }: Outcome, verbatim?: string): void {
  for (const codec of codecs) {
    const encoder = codec.encodeStream?.(context);
    if (encoder === undefined) throw new Error('no stream');
    const frames: WireFrame[] = [];
    for (const event of events) frames.push(...encoder.event(event));
    frames.push(...encoder.keepAlive());
    frames.push(...(ended === 'complete' ? encoder.end() : encoder.error(ended)));
    const problems = codec.format === verbatim ? [] : (legal[codec.format]?.(frames) ?? []);
    expect(
      problems.filter((problem) => !tolerated.test(problem)),
      `${codec.format}: ${JSON.stringify(frames)}`,
    ).toEqual([]);
    // `[DONE]` may stand behind the failure.
    const isReported = JSON.stringify(frames.slice(-2)).includes('"error"');
    if (ended !== 'complete') expect(isReported, codec.format).toBe(true);
    if (ended !== 'complete') continue;
    const whole = codec.encodeWhole(context);
    for (const event of events) whole.event(event);
    const body: JsonObject = whole.end();
    expect(JSON.parse(JSON.stringify(body))).toBeTypeOf('object');
  }
}

/** Calls to which the provider gave no id get one that nobody else has. */
function withoutIds(events: readonly GatewayEvent[]): string {
  return JSON.stringify(events).replaceAll(/call_[0-9a-f]{24}/g, 'call_');
}

function cutAt(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...pieces, bytes.subarray(at)].filter(({ length }) => length > 0);
}

const sizes = fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 30 });

describe.each(codecs.map((codec) => [codec.format, codec] as const))('an answer in %s', (format, codec) => {
  const streams = fixturesOf(format, 'streams', '.sse');
  const replies = fixturesOf(format, 'replies', '.json');

  test('there is something to damage', () => {
    expect(streams.length).toBeGreaterThan(5);
    expect(replies.length).toBeGreaterThan(5);
  });

  test.each(streams.map(({ name, text }) => [name, text] as const))(
    'the stream %s never ends well when it is cut before its end',
    (_name, text) => {
      const bytes = Buffer.from(text);
      const marks = [...codec.marks.terminal, '"stop_reason":"'];
      const first = Math.min(...marks.map((mark) => bytes.indexOf(mark)).filter((at) => at >= 0));
      expect(first).toBeGreaterThan(0);
      for (const at of cuts(bytes.length, [first, bytes.length])) {
        const piece = [bytes.subarray(0, at)];
        const decoded = outcomeOf(decoding(codec, true), piece);
        const passed = outcomeOf(passing(codec, true), piece);
        if (at > first) continue;
        expect(decoded.ended, `decoded, cut at ${at}`).not.toBe('complete');
        expect(passed.ended, `passed, cut at ${at}`).not.toBe('complete');
      }
    },
  );

  test.each(streams.map(({ name, text }) => [name, text] as const))(
    'the stream %s is legal for every client wherever it is cut',
    (_name, text) => {
      const bytes = Buffer.from(text);
      const places = everything ? 150 : 15;
      for (let at = 0; at < bytes.length; at += Math.max(1, Math.floor(bytes.length / places))) {
        expectLegalForAll(outcomeOf(decoding(codec, true), [bytes.subarray(0, at)]));
      }
    },
  );

  test.each(streams.map(({ name, text }) => [name, text] as const))(
    'the stream %s means the same in any pieces',
    (_name, text) => {
      const bytes = Buffer.from(text);
      const whole = outcomeOf(decoding(codec, true), [bytes]);
      expect(whole.ended).toBe('complete');
      fc.assert(
        fc.property(sizes, (cut) => {
          const pieces = outcomeOf(decoding(codec, true), cutAt(bytes, cut));
          expect(pieces.ended).toBe('complete');
          expect(withoutIds(pieces.events)).toBe(withoutIds(whole.events));
        }),
        { seed, numRuns: everything ? 20 : 5 },
      );
    },
  );

  test('a damaged stream ends in an error or is legal for every client', () => {
    const frames = fc.constantFrom(...streams).chain(({ text }) => {
      const parsed = parseSse(text);
      const frame = fc.nat(parsed.length - 1).chain((index) => {
        const { event, data } = parsed[index] ?? { data: '' };
        const line = event === undefined ? '' : `event: ${event}\n`;
        const changed = data.startsWith('{') ? near(JSON.parse(data), 2) : fc.constant(data);
        return changed.map((one) => ({ index, text: `${line}data: ${one}\n\n` }));
      });
      const actions = fc.array(
        fc.tuple(fc.constantFrom('replace', 'remove', 'repeat', 'swap', 'insert'), frame),
        { maxLength: 3 },
      );
      return actions.map((list) => {
        const all = parsed.map(
          ({ event, data }) => `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`,
        );
        for (const [action, { index, text: other }] of list) {
          if (action === 'replace') all[index] = other;
          else if (action === 'remove') all.splice(index, 1);
          else if (action === 'repeat') all.splice(index, 0, all[index] ?? '');
          else if (action === 'insert') all.splice(index, 0, other);
          else all.splice(index, 2, all[index + 1] ?? '', all[index] ?? '');
        }
        return all.join('');
      });
    });
    let clean = 0;
    let failed = 0;
    fc.assert(
      fc.property(frames, sizes, (text, cut) => {
        const pieces = cutAt(Buffer.from(text), cut);
        const outcome = outcomeOf(decoding(codec, true), pieces);
        if (outcome.ended === 'complete') clean += 1;
        else failed += 1;
        expectLegalForAll(outcome, format);
        outcomeOf(passing(codec, true), pieces);
        outcomeOf(decoding(codec, false), pieces);
      }),
      { seed, numRuns: tries(3000) },
    );
    console.log(`${format}, damaged streams, seed ${seed}: ${clean} complete, ${failed} errors`);
  });

  test('a damaged whole reply is an error or a reply for every client', () => {
    const reply = fc.constantFrom(...replies).chain(({ text }) => near(JSON.parse(text), 3));
    let clean = 0;
    let failed = 0;
    fc.assert(
      fc.property(reply, sizes, (text, cut) => {
        const pieces = cutAt(Buffer.from(text), cut);
        for (const stream of [true, false]) {
          const outcome = outcomeOf(decoding(codec, stream), pieces);
          if (outcome.ended === 'complete') clean += 1;
          else failed += 1;
          expectLegalForAll(outcome, format);
          outcomeOf(passing(codec, stream), pieces);
        }
      }),
      { seed, numRuns: tries(2000) },
    );
    console.log(`${format}, damaged whole replies, seed ${seed}: ${clean} complete, ${failed} errors`);
  });

  test.each(replies.map(({ name, text }) => [name, text] as const))(
    'the whole reply %s is never complete when it is cut',
    (_name, text) => {
      const bytes = Buffer.from(text.trimEnd());
      for (const at of cuts(bytes.length, [0, bytes.length])) {
        expect(outcomeOf(decoding(codec, false), [bytes.subarray(0, at)]).ended, `cut at ${at}`).not.toBe(
          'complete',
        );
      }
    },
  );

  test('noise is the provider’s failure', () => {
    const framed = fc
      .tuple(noise, fc.boolean())
      .map(([bytes, asFrame]) =>
        asFrame ? Buffer.concat([Buffer.from('data: '), bytes, Buffer.from('\n\n')]) : bytes,
      );
    fc.assert(
      fc.property(
        fc.array(framed, { maxLength: 4 }),
        fc.boolean(),
        fc.constantFrom(200, 200, 201, 302, 400, 429, 500, 503, 599),
        (pieces, stream, status) => {
          const decoded = outcomeOf(decoding(codec, stream), pieces, status);
          expect(decoded.ended).not.toBe('complete');
          expectLegalForAll(decoded, format);
          const passed = outcomeOf(passing(codec, stream), pieces, status);
          if (stream || status >= 300) expect(passed.ended).not.toBe('complete');
        },
      ),
      { seed, numRuns: tries(2000) },
    );
  });
});
