import { from, lastValueFrom } from 'rxjs';
import type { Upstream } from 'sluice';
import { eachLine } from '../../channels/_kit/batches/batch-lines.ts';
import { unframed, withNumber } from '../../channels/bedrock/streams.ts';
import { requestWhole, stepOf } from '../../channels/_kit/jobs/jobs.ts';
import { passEventStream } from '../../core/formats/_shared/event-stream.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { UpstreamRequest } from '../../core/sdk/channel.ts';
import { wholeBytes } from '../../core/sdk/whole-bytes.ts';
import { testCall } from '../support/call.ts';
import type { Work } from './measure.ts';
import { times } from './requests.ts';

/** Shapes of a provider's response. */
const responses: readonly { readonly shape: string; make(size: number): readonly Buffer[] }[] = [
  {
    shape: 'single bytes',
    make: (size) =>
      [...Buffer.from(JSON.stringify({ id: 'x'.repeat(size) }))].map((byte) => Buffer.from([byte])),
  },
  {
    shape: 'pieces of a kilobyte',
    make: (size) => cut(JSON.stringify({ id: 'x'.repeat(64 * size) }), 1024),
  },
  { shape: 'one long piece', make: (size) => [Buffer.from(JSON.stringify({ id: 'x'.repeat(64 * size) }))] },
  {
    shape: 'many members',
    make: (size) =>
      cut(JSON.stringify(Object.fromEntries(times(size, (index) => [`odd_${index}`, index]))), 4096),
  },
  {
    shape: 'many numbers',
    make: (size) => cut(JSON.stringify({ embedding: times(8 * size, (index) => index / 7) }), 65_536),
  },
];

function cut(text: string, length: number): Buffer[] {
  const bytes = Buffer.from(text);
  return times(Math.ceil(bytes.length / length), (index) =>
    bytes.subarray(index * length, (index + 1) * length),
  );
}

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0);
const answer = (pieces: readonly Buffer[], type = 'application/json'): Upstream => ({
  status: 200,
  headers: { 'content-type': type },
  bytes: from(pieces),
});
const read = ({ bytes }: Upstream): Promise<unknown> => lastValueFrom(bytes, { defaultValue: undefined });

const question: UpstreamRequest = {
  operation: 'transcribe',
  format: 'any',
  model: 'm',
  stream: false,
  path: '/',
  query: {},
  headers: {},
  body: '',
};

/** Readers of whole responses: the job of each is one call. */
const readers: readonly { readonly part: string; run(pieces: readonly Buffer[]): Promise<unknown> }[] = [
  { part: 'channels: whole response', run: (pieces) => lastValueFrom(from(pieces).pipe(wholeBytes())) },
  {
    part: 'channels: embeddings with a count',
    run: (pieces) => read(withNumber(answer(pieces), 'count', 7)),
  },
  {
    part: 'channels: step of a job',
    run: (pieces) =>
      requestWhole(
        testCall().call,
        () => Promise.resolve(answer(pieces)),
        stepOf(question, { path: '/jobs/1' }),
      ),
  },
  { part: 'channels: lines of a batch', run: (pieces) => read(eachLine(answer(pieces), (line) => line)) },
];

const wholeWork: readonly Work[] = readers.flatMap(({ part, run }) =>
  responses.map(({ shape, make }): Work => ({
    part,
    shape,
    // Most of them are read in steps, between which the pieces arrive.
    oneStep: false,
    most: 200_000,
    make: (size) => {
      const pieces = make(size);
      return { bytes: lengthOf(pieces), run: () => run(pieces) };
    },
  })),
);

const delta = { contentBlockIndex: 0, delta: { text: 'a' } };
const insideChunk = (json: string): string => `{"bytes":"${Buffer.from(json).toString('base64')}"}`;

/** Streams of binary messages, as their channel reads them. */
const streams: readonly {
  readonly shape: string;
  readonly format: string;
  make(size: number): readonly Buffer[];
}[] = [
  {
    shape: 'many events',
    format: 'converse',
    make: (size) =>
      times(size, () => passEventStream({ event: 'contentBlockDelta', data: JSON.stringify(delta) })),
  },
  {
    shape: 'many events in one piece',
    format: 'converse',
    make: (size) => [
      Buffer.concat(
        times(size, () => passEventStream({ event: 'contentBlockDelta', data: JSON.stringify(delta) })),
      ),
    ],
  },
  {
    shape: 'an event in single bytes',
    format: 'converse',
    make: (size) =>
      [...passEventStream({ event: 'odd', data: `{"a":"${'x'.repeat(size)}"}` })].map((byte) =>
        Buffer.from([byte]),
      ),
  },
  {
    shape: 'events with other events inside',
    format: 'messages',
    make: (size) =>
      times(size, () =>
        passEventStream({ event: 'chunk', data: insideChunk('{"type":"content_block_stop","index":0}') }),
      ),
  },
  {
    shape: 'an event whose inside is nested',
    format: 'messages',
    make: (size) => [
      passEventStream({
        event: 'chunk',
        data: insideChunk(`{"index":${'['.repeat(16 * size)}${']'.repeat(16 * size)}}`),
      }),
    ],
  },
];

const streamWork: readonly Work[] = streams.map(({ shape, format, make }): Work => ({
  part: 'channels: stream of binary messages',
  shape,
  oneStep: shape.includes('one piece') || shape.includes('nested'),
  most: 200_000,
  make: (size) => {
    const pieces = make(size);
    return {
      bytes: lengthOf(pieces),
      run: () => read(unframed(answer(pieces, 'application/vnd.amazon.eventstream'), format)),
    };
  },
}));

/** Texts of JSON that a provider may send in one event. */
const texts: readonly { readonly shape: string; make(size: number): string }[] = [
  { shape: 'nested lists', make: (size) => `{"a":${'['.repeat(16 * size)}${']'.repeat(16 * size)}}` },
  { shape: 'nested objects', make: (size) => `${'{"a":'.repeat(16 * size)}1${'}'.repeat(16 * size)}` },
  { shape: 'nested lists without an end', make: (size) => `{"a":${'['.repeat(32 * size)}` },
  { shape: 'brackets in a text', make: (size) => JSON.stringify({ a: '[{"'.repeat(16 * size) }) },
  { shape: 'escapes in a text', make: (size) => `{"a":"${'\\\\'.repeat(16 * size)}"}` },
  { shape: 'lists side by side', make: (size) => JSON.stringify({ a: times(16 * size, () => []) }) },
];

const jsonWork: readonly Work[] = texts.map(({ shape, make }): Work => ({
  part: 'json: parse',
  shape,
  make: (size) => {
    const text = make(size);
    return { bytes: text.length, run: () => parseObject(text) };
  },
}));

/** Responses that channels parse themselves. */
export const readerWork: readonly Work[] = [...wholeWork, ...streamWork, ...jsonWork];
