import type { Codec, EncodeTarget, Frame, ReplyContext, WireFrame } from '../../core/sdk/format.ts';
import { parseSse, SseCutter, writeSse } from '../../core/formats/_shared/sse.ts';
import { ReportedPaths } from '../../core/formats/_shared/losses.ts';
import { JsonCutter } from '../../core/formats/_shared/json-frames.ts';
import { parseJsonBody } from '../../core/front/json-body.ts';
import type { ChatRequest } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { allFormats } from '../support/fixtures.ts';
import { tableOf, type Work } from './measure.ts';
import { frameShapes, replyShapes } from './replies.ts';
import { chatFormats, requestShapes, type ChatFormat } from './requests.ts';

const formats = await allFormats();

/** The codec for chats of a format. */
export function chatCodecOf(name: string): Codec<ChatRequest> {
  const codec = formats.find((format) => format.name === name)?.codecs.chat;
  if (codec === undefined) throw new Error(`no format ${name}`);
  return codec;
}

const params = { model: 'm', stream: true };

export function target(): EncodeTarget {
  const lost = new ReportedPaths();
  return {
    model: 'm',
    stream: true,
    traits: {},
    headers: {},
    unsupported: 'drop',
    drop: (path) => void lost.isNew(path),
  };
}

export function contextOf(): ReplyContext {
  return {
    model: 'm',
    body: { stream_options: { include_usage: true }, logprobs: true },
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 7,
    drop: () => {},
  };
}

export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Returns a function that ignores refusals of a format. */
export function tolerant(run: () => unknown): () => unknown {
  return () => {
    try {
      return run();
    } catch (error) {
      if ((error as { status?: number }).status === undefined) throw error;
      return undefined;
    }
  };
}

function requestWork(): Work[] {
  return chatFormats.flatMap((format) =>
    requestShapes.flatMap((shape): Work[] => {
      const codec = chatCodecOf(format);
      const { name, most } = shape;
      const bounded = most === undefined ? {} : { most };
      const of = (size: number): JsonObject => shape.make(format, size);
      const decode: Work = {
        part: `${format}: request decode`,
        shape: name,
        ...bounded,
        make: (size) => {
          const body = of(size);
          return { bytes: bytesOf(body), run: tolerant(() => codec.validate(body, params)) };
        },
      };
      const patch: Work = {
        part: `${format}: request patch`,
        shape: name,
        ...bounded,
        make: (size) => {
          const body = of(size);
          const edits = { model: 'other', settings: { maxOutput: 10 } };
          return { bytes: bytesOf(body), run: tolerant(() => codec.patch(body, edits, {})) };
        },
      };
      const encode = chatFormats.map((other): Work => ({
        part: `${format} to ${other}: request encode`,
        shape: name,
        ...bounded,
        make: (size) => {
          const body = of(size);
          let request: ChatRequest | undefined;
          tolerant(() => (request = codec.validate(body, params)))();
          return {
            bytes: bytesOf(body),
            run: tolerant(() => request && chatCodecOf(other).encodeRequest(request, target())),
          };
        },
      }));
      return [decode, patch, ...encode];
    }),
  );
}

function encoded(codec: Codec, events: readonly GatewayEvent[]): WireFrame[] {
  const encoder = codec.encodeStream?.(contextOf());
  if (encoder === undefined) throw new Error(`${codec.format} has no stream.`);
  const frames: WireFrame[] = [];
  for (const event of events) for (const frame of encoder.event(event)) frames.push(frame);
  for (const frame of encoder.end()) frames.push(frame);
  return frames;
}

function decoded(codec: Codec, frames: readonly Frame[]): GatewayEvent[] {
  const decoder = codec.decodeStream?.({});
  if (decoder === undefined) throw new Error(`${codec.format} has no stream.`);
  const events: GatewayEvent[] = [];
  for (const frame of frames) for (const event of decoder.frame(frame)) events.push(event);
  for (const event of decoder.end()) events.push(event);
  return events;
}

function gathered(codec: Codec, events: readonly GatewayEvent[]): JsonObject {
  const encoder = codec.encodeWhole(contextOf());
  for (const event of events) encoder.event(event);
  return encoder.end();
}

const wire = (frames: readonly WireFrame[]): string => frames.map(writeSse).join('');

function replyWork(): Work[] {
  const names = [...chatFormats, 'text-completions'];
  return names.flatMap((format) =>
    replyShapes.flatMap((shape): Work[] => {
      const codec = chatCodecOf(format);
      const step = (part: string, make: Work['make'], oneStep: boolean): Work => ({
        part: `${format}: ${part}`,
        shape: shape.name,
        oneStep,
        make,
      });
      return [
        step(
          'stream encode',
          (size) => {
            const events = shape.make(size);
            return { bytes: bytesOf(events), run: () => encoded(codec, events) };
          },
          false,
        ),
        step(
          'stream decode',
          (size) => {
            const text = wire(encoded(codec, shape.make(size)));
            const frames = parseSse(text);
            return { bytes: text.length, run: tolerant(() => decoded(codec, frames)) };
          },
          false,
        ),
        step(
          'whole encode',
          (size) => {
            const events = shape.make(size);
            return { bytes: bytesOf(events), run: () => gathered(codec, events) };
          },
          false,
        ),
        step(
          'whole decode',
          (size) => {
            const body = gathered(codec, shape.make(size));
            return { bytes: bytesOf(body), run: tolerant(() => codec.decodeWhole(body, {})) };
          },
          true,
        ),
      ];
    }),
  );
}

/** Returns the work of decoding providers' own frames and encoding them for the clients of each format. */
function frameWork(): Work[] {
  return frameShapes.flatMap((shape) => {
    const codec = chatCodecOf(shape.format);
    const framesOf = (size: number): Frame[] =>
      parseSse(
        shape
          .make(size)
          .map((json) => `data: ${JSON.stringify(json)}\n\n`)
          .join(''),
      );
    const bytes = (frames: readonly Frame[]): number =>
      frames.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
    return [
      {
        part: `${shape.format}: stream decode`,
        shape: shape.name,
        oneStep: false,
        make: (size: number) => {
          const frames = framesOf(size);
          return { bytes: bytes(frames), run: tolerant(() => decoded(codec, frames)) };
        },
      },
      ...chatFormats.flatMap((other): Work[] =>
        (['stream', 'whole'] as const).map((kind) => ({
          part: `${shape.format} to ${other}: ${kind} encode`,
          shape: shape.name,
          oneStep: false,
          make: (size) => {
            const frames = framesOf(size);
            let events: GatewayEvent[] = [];
            tolerant(() => (events = decoded(codec, frames)))();
            const encode = kind === 'stream' ? encoded : gathered;
            return { bytes: bytes(frames), run: tolerant(() => encode(chatCodecOf(other), events)) };
          },
        })),
      ),
    ];
  });
}

const unlimited = { body: Infinity, depth: 1_000_000, values: Infinity, members: Infinity };

/** Cuts of one stream, as a network may make them; each byte for itself takes a hundred in this program. */
const cuts: readonly { readonly name: string; readonly length: number; readonly most: number }[] = [
  { name: 'byte by byte', length: 1, most: 64 * 1024 },
  { name: 'in reads of 64 KiB', length: 64 * 1024, most: Infinity },
];

/** Streams of server-sent events, in every size. */
export const streams: readonly { readonly name: string; make(size: number): string }[] = [
  { name: 'one giant line', make: (size) => `data: {"a":"${'b'.repeat(64 * size)}"}\n\n` },
  { name: 'tiny frames', make: (size) => 'data: {}\n\n'.repeat(size) },
  { name: 'tiny frames with carriage returns', make: (size) => 'data: {}\r\n\r\n'.repeat(size) },
  { name: 'one frame of many lines', make: (size) => `${'data: {}\n'.repeat(size)}\n` },
  { name: 'comments alone', make: (size) => ': ping\n\n'.repeat(size) },
  { name: 'blank lines alone', make: (size) => '\n'.repeat(16 * size) },
  { name: 'a line that never ends', make: (size) => `data: ${'\r'.repeat(16 * size)}` },
  { name: 'escaped quotes', make: (size) => `data: {"a":"${'\\"'.repeat(16 * size)}"}\n\n` },
];

/** A stream as reads of so many bytes, each of them made when it comes: half a million that lie ready would be in no cache. */
export function* pieces(bytes: Buffer, length: number): Generator<Buffer, void> {
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length);
}

function wireWork(): Work[] {
  const bodies: readonly { readonly name: string; make(size: number): string }[] = [
    { name: 'escaped quotes', make: (size) => `{"a":"${'\\"'.repeat(16 * size)}"}` },
    { name: 'backslashes', make: (size) => `{"a":"${'\\\\'.repeat(16 * size)}"}` },
    { name: 'one long word', make: (size) => `{"a":"${'b'.repeat(64 * size)}"}` },
    {
      name: 'many members',
      make: (size) =>
        JSON.stringify(Object.fromEntries(Array.from({ length: size }, (_, index) => [`m${index}`, '']))),
    },
    { name: 'many values', make: (size) => `{"a":[${'1,'.repeat(4 * size)}1]}` },
    { name: 'blanks', make: (size) => `{${' '.repeat(64 * size)}}` },
  ];
  return [
    ...bodies.map((body): Work => ({
      part: 'body: check and parse',
      shape: body.name,
      make: (size) => {
        const bytes = Buffer.from(body.make(size));
        return { bytes: bytes.length, run: () => parseJsonBody(bytes, unlimited) };
      },
    })),
    ...streams.flatMap((stream) =>
      cuts.flatMap(({ name, length, most }): Work[] => [
        {
          part: 'server-sent events: cut and read',
          shape: `${stream.name}, ${name}`,
          most,
          oneStep: false,
          make: (size) => {
            const bytes = Buffer.from(stream.make(size));
            return {
              bytes: bytes.length,
              run() {
                const cutter = new SseCutter();
                let frames = 0;
                for (const chunk of pieces(bytes, length)) {
                  const run = cutter.push(chunk);
                  if (run !== undefined) frames += parseSse(run).length;
                }
                const rest = cutter.end();
                return rest === undefined ? frames : frames + parseSse(rest).length;
              },
            };
          },
        },
        {
          part: 'streamed JSON: cut',
          shape: `${stream.name}, ${name}`,
          most,
          oneStep: false,
          make: (size) => {
            const bytes = Buffer.from(stream.make(size).replaceAll('data: ', ''));
            return {
              bytes: bytes.length,
              run() {
                const cutter = new JsonCutter();
                let frames = 0;
                for (const chunk of pieces(bytes, length)) frames += cutter.push(chunk).length;
                return frames;
              },
            };
          },
        },
      ]),
    ),
  ];
}

/** Baseline: the time that V8 itself takes for as many names. */
const tables: readonly Work[] = [
  {
    part: 'V8 alone: a copy of a table',
    shape: 'names',
    least: 16_384,
    except: 'V8 itself',
    make: tableOf,
  },
  {
    part: 'V8 alone: JSON.parse',
    shape: 'names',
    least: 16_384,
    except: 'V8 itself',
    make: (size) => {
      const text = JSON.stringify(tableOf(size).run());
      return { bytes: text.length, run: () => JSON.parse(text) as unknown };
    },
  },
];

/** Everything that formats and framings do. */
export const codecWork: readonly Work[] = [
  ...tables,
  ...wireWork(),
  ...requestWork(),
  ...replyWork(),
  ...frameWork(),
];
export type { ChatFormat };
