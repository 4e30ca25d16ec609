import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { ResponsesStreamDecoder } from '../../../core/formats/responses/stream-in/index.ts';
import { ResponsesStreamEncoder } from '../../../core/formats/responses/stream-out/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import { checkLegal } from '../../support/legal-responses.ts';
import { context, encode, framesOf, outputOf, responseOf, whole } from './reply-support.ts';
import { tries } from '../../support/tries.ts';

const position = { block: fc.integer({ min: 0, max: 3 }), choice: fc.constantFrom(0, 0, 0, 0, 1) };
const words = fc.constantFrom('', 'Hi', ' 🌍', '{"command":', '["ls"]}', 'null');
const proofs = fc.constantFrom(
  undefined,
  { format: 'messages', kind: 'signature', value: 'sig' } as const,
  { format: 'responses', kind: 'encrypted', value: 'gAAAA' } as const,
);
const fields = fc.constantFrom<(JsonObject | undefined)[]>(
  undefined,
  undefined,
  undefined,
  { $item: { id: 'x_1', type: 'message', status: 'in_progress' } },
  { $item: { id: 'x_1', type: 'reasoning', summary: [], content: [] }, $part: { place: 'content' } },
  { $item: { id: 'x_2', type: 'shell_call', action: { commands: [] } } },
  { $part: { type: 'output_text', future: 1 }, $frame: { obfuscation: 'x' } },
  { $done: { id: 'x_1', type: 'message', status: 'completed' }, $partDone: { type: 'output_text' } },
  { $separator: true, $empty: true },
  { $response: { status: 'completed', usage: null } },
);
const of = (type: string, members: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc
    .record({ type: fc.constant(type), ...position, ...members, own: fields })
    .map(({ own, ...event }) => (own === undefined ? event : { ...event, extra: { responses: own } }));
const withProof = (type: string) =>
  fc.tuple(of(type), proofs).map(([event, proof]) => (proof === undefined ? event : { ...event, proof }));

const opaqueTypes = fc.constantFrom(
  'response.output_item.added',
  'response.output_item.done',
  'response.web_search_call.searching',
  'response.output_text.future',
  'response.completed',
  'response.future',
  'error',
);
const opaque = fc.record({
  type: fc.constant('opaque'),
  format: fc.constantFrom('responses', 'responses', 'messages'),
  value: fc.record(
    {
      type: opaqueTypes,
      output_index: fc.integer({ min: 0, max: 3 }),
      item_id: fc.constantFrom('ws_1', 'x_1'),
      item: fc.constantFrom(
        { type: 'web_search_call', id: 'ws_1', status: 'in_progress' },
        { type: 'compaction' },
      ),
    },
    { requiredKeys: ['type'] },
  ),
});

const reasons = fc.constantFrom(
  'stop',
  'length',
  'tool-calls',
  'content-filter',
  'refusal',
  'pause',
  'other',
);
const anyEvent = fc.oneof(
  fc.record({
    type: fc.constant('head'),
    id: fc.constantFrom('', 'resp_up', 'chatcmpl-x'),
    model: fc.constant('up'),
  }),
  of('text-start'),
  of('text-delta', { text: words, logprobs: fc.constant([{ token: 'a', logprob: -1 }]) }),
  of('text-delta', { text: words }),
  withProof('text-end'),
  of('citation', { citation: fc.constantFrom({ url: 'https://a.example' }, { title: 'A' }) }),
  of('refusal-start'),
  of('refusal-delta', { text: words }),
  of('refusal-end'),
  of('reasoning-start'),
  of('reasoning-delta', { text: words }),
  withProof('reasoning-end'),
  of('tool-start', {
    id: fc.constantFrom('', 'a', 'b'),
    name: fc.constantFrom('f', 'local_shell', 'code__exec'),
    custom: fc.boolean(),
  }),
  of('tool-delta', { input: words }),
  of('tool-end'),
  of('media-start', { media: fc.constantFrom('image', 'audio') }),
  of('media-delta', { data: fc.constantFrom('', 'AAAA'), transcript: fc.constant('la') }),
  of('media-end', { url: fc.constant('https://a.example/x.png') }),
  fc.record({ type: fc.constant('finish'), choice: position.choice, reason: reasons }),
  fc.constant({ type: 'usage', usage: { input: 3, output: 5, cacheRead: 1, cacheWrite: 0, reasoning: 2 } }),
  opaque,
) as unknown as fc.Arbitrary<GatewayEvent>;
const anyEvents = fc.array(anyEvent, { maxLength: 40 });

const tools = [
  { type: 'local_shell' },
  { type: 'namespace', name: 'code', tools: [{ type: 'custom', name: 'exec' }] },
];
const contexts = fc.constantFrom(context(), context({ tools, reasoning: { summary: 'auto' } }));

/** Blocks as an upstream would send them: each from start to end, those of calls interleaved, some ends missing. */
const block = (kind: 'text' | 'refusal' | 'reasoning' | 'tool') =>
  fc.record({
    kind: fc.constant(kind),
    pieces: fc.array(words, { maxLength: 4 }),
    ends: fc.constantFrom(true, true, true, false),
  });
const blocks = fc.array(fc.oneof(block('text'), block('refusal'), block('reasoning'), block('tool')), {
  maxLength: 8,
});

function eventsOf(
  list: readonly { kind: string; pieces: string[]; ends: boolean }[],
  order: readonly number[],
): GatewayEvent[] {
  const queues = list.map(({ kind, pieces, ends }, number) => {
    const base = { block: number, choice: 0 };
    const start =
      kind === 'tool'
        ? { type: 'tool-start', ...base, id: `call_${number}`, name: 'f' }
        : { type: `${kind}-start`, ...base };
    const deltas = pieces.map((piece) =>
      kind === 'tool'
        ? { type: 'tool-delta', ...base, input: piece }
        : { type: `${kind}-delta`, ...base, text: piece },
    );
    return [start, ...deltas, ...(ends ? [{ type: `${kind}-end`, ...base }] : [])] as GatewayEvent[];
  });
  const events: GatewayEvent[] = [];
  for (const pick of order) {
    const left = queues.filter((queue) => queue.length > 0);
    const event = left[pick % Math.max(1, left.length)]?.shift();
    if (event !== undefined) events.push(event);
  }
  return [...events, ...queues.flat()];
}

describe('whatever events come', () => {
  it('the client gets a legal stream', () => {
    fc.assert(
      fc.property(anyEvents, contexts, (events, reply) => {
        expect(checkLegal(encode(events, reply))).toEqual([]);
      }),
      { numRuns: tries(3000) },
    );
  });

  it('a broken reply ends with an error, and with a failed response when it had begun', () => {
    fc.assert(
      fc.property(anyEvents, contexts, (events, reply) => {
        const encoder = new ResponsesStreamEncoder(reply);
        const frames = events.flatMap((event) => [...encoder.event(event)]);
        frames.push(...encoder.error(new GatewayError('upstream_cut', 'Cut.')));
        const begun = frames.length > 1;
        expect(begun ? checkLegal(frames) : frames[0]?.event).toEqual(begun ? [] : 'error');
        if (begun) expect(frames.pop()).toEqual({ text: '[DONE]' });
        expect(frames.at(-1)?.event).toBe(begun ? 'response.failed' : 'error');
        expect([...encoder.event({ type: 'finish', choice: 0, reason: 'stop' }), ...encoder.end()]).toEqual(
          [],
        );
      }),
      { numRuns: tries(1000) },
    );
  });

  it('the whole reply is the last response of the stream', () => {
    fc.assert(
      fc.property(anyEvents, contexts, (events, reply) => {
        const { completed_at: _, ...streamed } = responseOf(encode(events, reply));
        const { completed_at: __, ...body } = whole(events, reply);
        expect(body).toEqual(streamed);
      }),
    );
  });
});

describe('whatever a provider of another format says', () => {
  it('nothing of it is lost, in whatever order its calls come', () => {
    fc.assert(
      fc.property(blocks, fc.array(fc.nat(), { maxLength: 40 }), (list, order) => {
        const frames = encode(eventsOf(list, order));
        expect(checkLegal(frames)).toEqual([]);
        const output = outputOf(frames);
        const expected = list.flatMap(({ kind, pieces }) => {
          const all = pieces.join('');
          return all === '' && kind !== 'tool' ? [] : [`${kind} ${all === '' ? '{}' : all}`];
        });
        const emitted = output.flatMap((item) => {
          if (item.type === 'function_call') return [`tool ${String(item.arguments)}`];
          return ((item.type === 'reasoning' ? item.summary : (item.content ?? [])) as JsonObject[]).map(
            (part) =>
              item.type === 'reasoning'
                ? `reasoning ${String(part.text)}`
                : part.type === 'refusal'
                  ? `refusal ${String(part.refusal)}`
                  : `text ${String(part.text)}`,
          );
        });
        const empty = expected.length === 0 ? ['text '] : [];
        // A call that never ended has no arguments to be made up.
        const unmade = (call: string): string => (call === 'tool ' ? 'tool {}' : call);
        expect(emitted.map(unmade).toSorted()).toEqual([...expected, ...empty].toSorted());
      }),
      { numRuns: tries(1000) },
    );
  });
});

describe('a provider of this format that makes mistakes', () => {
  const streams = fixturesOf('responses', 'streams', '.sse').map(({ text }) => framesOf(text));

  it('is read or refused, and never told illegally', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...streams),
        fc.array(fc.tuple(fc.constantFrom('drop', 'twice', 'swap', 'bare', 'nulls'), fc.nat({ max: 60 })), {
          maxLength: 6,
        }),
        (frames, mistakes) => {
          const list: JsonObject[] = [...frames];
          for (const [mistake, at] of mistakes) {
            const index = at % list.length;
            const frame = list[index] ?? {};
            if (mistake === 'drop' && list.length > 1) list.splice(index, 1);
            else if (mistake === 'twice') list.splice(index, 0, frame);
            else if (mistake === 'swap') list.push(...list.splice(index, 1));
            else if (mistake === 'bare') list[index] = { type: frame.type };
            else
              list[index] = Object.fromEntries(
                Object.keys(frame).map((key) => [key, key === 'type' ? frame[key] : null]),
              );
          }
          const decoder = new ResponsesStreamDecoder();
          const events: GatewayEvent[] = [];
          try {
            for (const frame of list) events.push(...decoder.json(frame));
            events.push(...decoder.end());
          } catch (error) {
            expect(error).toBeInstanceOf(GatewayError);
            expect((error as GatewayError).origin).toBe('upstream');
            return;
          }
          // A provider without usage is its own fault; everything else is ours.
          const problems = checkLegal(encode(events)).filter(
            (problem) => !/no usage|: no [a-z_]+$|status undefined|incomplete_details/.test(problem),
          );
          expect(problems).toEqual([]);
        },
      ),
      { numRuns: tries(3000) },
    );
  });
});
