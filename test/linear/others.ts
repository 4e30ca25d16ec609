import { Readable } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { redact } from '../../core/formats/_shared/redact.ts';
import { upstreamError } from '../../core/formats/_shared/upstream-error/index.ts';
import type { Codec, Format, RouteParams } from '../../core/sdk/format.ts';
import { readForm } from '../../core/front/form.ts';
import { starsOf } from '../../core/routing/model-names.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import audio from '../../core/formats/audio/index.ts';
import embeddings from '../../core/formats/embeddings/index.ts';
import generateContent from '../../core/formats/generate-content/index.ts';
import images from '../../core/formats/images/index.ts';
import moderations from '../../core/formats/moderations/index.ts';
import rerank from '../../core/formats/rerank/index.ts';
import textCompletions from '../../core/formats/text-completions/index.ts';
import { matchesModel, patternsOverlap } from '../../core/sdk/allowed-models.ts';
import { redactor } from '../../plugins/usage-log/redact.ts';
import { formOf } from '../support/form.ts';
import { bytesOf, chatCodecOf, codecWork, contextOf, target, tolerant } from './codecs.ts';
import type { Work } from './measure.ts';
import { refusalWork } from './refusals.ts';
import { members, times } from './requests.ts';

/** Shape of a request or reply of an operation other than chat. */
interface Shape {
  readonly name: string;
  readonly most?: number;
  make(size: number): JsonObject;
}

/** An operation: its requests, and what a provider answers to the first of them. */
interface Operation {
  readonly format: Format;
  readonly operation: keyof Format['codecs'];
  readonly params?: RouteParams;
  readonly requests: readonly Shape[];
  readonly replies: readonly Shape[];
}

const unknown = (base: JsonObject): Shape => ({
  name: 'unknown members',
  make: (size) => ({ ...base, ...members(size) }),
});
const list = (name: string, make: (size: number) => JsonObject, most?: number): Shape => ({
  name,
  make,
  ...(most === undefined ? {} : { most }),
});
const usage = { prompt_tokens: 1, total_tokens: 1 };
const vector = (index: number, embedding: unknown): JsonObject =>
  ({ object: 'embedding', index, embedding }) as JsonObject;

const operations: readonly Operation[] = [
  {
    format: embeddings,
    operation: 'embed',
    requests: [
      list('one long word', (size) => ({ model: 'm', input: 'a'.repeat(64 * size) })),
      list('many inputs', (size) => ({ model: 'm', input: times(size, () => 'hello') }), 2048),
      list('many tokens', (size) => ({ model: 'm', input: times(size, (index) => index) })),
      unknown({ model: 'm', input: 'hello' }),
    ],
    replies: [
      list('many vectors', (size) => ({
        data: times(size, (index) => vector(index, [0.1, 0.2])),
        usage,
        model: 'm',
      })),
      list('one long vector', (size) => ({
        data: [
          vector(
            0,
            times(size, (index) => index / 7),
          ),
        ],
        usage,
        model: 'm',
      })),
      list('vectors in base64', (size) => ({
        data: [vector(0, Buffer.alloc(4 * size, 1).toString('base64'))],
        usage,
        model: 'm',
      })),
    ],
  },
  {
    format: generateContent,
    operation: 'embed',
    params: { model: 'm', kind: 'batch' },
    requests: [
      list('many inputs', (size) => ({
        requests: times(size, () => ({ model: 'models/m', content: { parts: [{ text: 'hello' }] } })),
      })),
    ],
    replies: [list('many vectors', (size) => ({ embeddings: times(size, () => ({ values: [0.1, 0.2] })) }))],
  },
  {
    format: rerank,
    operation: 'rerank',
    requests: [
      list(
        'many documents',
        (size) => ({ model: 'm', query: 'q', documents: times(size, () => 'hello') }),
        10_000,
      ),
      list('a long query', (size) => ({ model: 'm', query: 'q'.repeat(64 * size), documents: ['a'] })),
      list('many members of a document', (size) => ({
        model: 'm',
        query: 'q',
        documents: [members(size)],
        rank_fields: times(100, (index) => `odd_${index}`),
      })),
      unknown({ model: 'm', query: 'q', documents: ['a'] }),
    ],
    replies: [
      list('many scores', (size) => ({
        id: 'r',
        results: times(size, (index) => ({ index, relevance_score: 1 / (index + 1) })),
      })),
      list('many scores of one document', (size) => ({
        id: 'r',
        results: times(size, () => ({ index: 0, relevance_score: 1 })),
      })),
    ],
  },
  {
    format: moderations,
    operation: 'moderate',
    requests: [
      list('one long word', (size) => ({ model: 'm', input: 'a'.repeat(64 * size) })),
      list('many inputs', (size) => ({ model: 'm', input: times(size, () => 'hello') })),
      unknown({ model: 'm', input: 'hello' }),
    ],
    replies: [
      list('many verdicts', (size) => ({
        id: 'modr',
        model: 'm',
        results: times(size, () => ({ flagged: false, categories: {}, category_scores: {} })),
      })),
    ],
  },
  {
    format: images,
    operation: 'generate-image',
    requests: [
      list('one long word', (size) => ({ model: 'm', prompt: 'a'.repeat(64 * size) })),
      unknown({ model: 'm', prompt: 'a cat' }),
    ],
    replies: [
      list('many images', (size) => ({
        created: 1,
        data: times(size, () => ({ b64_json: 'iVBORw0KGgo=', revised_prompt: 'a cat' })),
      })),
      list('one large image', (size) => ({ created: 1, data: [{ b64_json: 'A'.repeat(64 * size) }] })),
    ],
  },
  {
    format: images,
    operation: 'edit-image',
    requests: [
      list('many images', (size) => ({
        model: 'm',
        prompt: 'a cat',
        images: times(size, () => ({ image_url: 'data:image/png;base64,iVBORw0KGgo=' })),
      })),
    ],
    replies: [],
  },
  {
    format: audio,
    operation: 'speak',
    requests: [
      list('one long word', (size) => ({ model: 'm', voice: 'v', input: 'a'.repeat(64 * size) })),
      unknown({ model: 'm', voice: 'v', input: 'hello' }),
    ],
    replies: [],
  },
  {
    format: audio,
    operation: 'transcribe',
    requests: [],
    replies: [
      list('many segments', (size) => ({
        text: 'hello',
        segments: times(size, (id) => ({ id, start: id, end: id + 1, text: 'hello' })),
      })),
      list('many words', (size) => ({
        text: 'hello',
        words: times(size, (start) => ({ word: 'hello', start, end: start + 1 })),
      })),
    ],
  },
];

function operationWork(): Work[] {
  return operations.flatMap(({ format, operation, params = {}, requests, replies }) => {
    const codec = format.codecs[operation] as Codec;
    const part = `${format.name}: ${operation}`;
    const bounded = ({ most }: Shape): object => (most === undefined ? {} : { most });
    return [
      ...requests.flatMap((shape): Work[] => [
        {
          part: `${part}: request decode and estimate`,
          shape: shape.name,
          ...bounded(shape),
          make: (size) => {
            const body = shape.make(size);
            const run = tolerant(() => codec.estimate?.(codec.validate(body, params)));
            return { bytes: bytesOf(body), run };
          },
        },
        {
          part: `${part}: request encode`,
          shape: shape.name,
          ...bounded(shape),
          make: (size) => {
            const body = shape.make(size);
            let request: ReturnType<Codec['validate']> | undefined;
            tolerant(() => (request = codec.validate(body, params)))();
            return {
              bytes: bytesOf(body),
              run: tolerant(() => request && codec.encodeRequest(request, target())),
            };
          },
        },
      ]),
      ...replies.flatMap((shape): Work[] => [
        {
          part: `${part}: whole decode`,
          shape: shape.name,
          make: (size) => {
            const body = shape.make(size);
            return { bytes: bytesOf(body), run: tolerant(() => codec.decodeWhole(body, {})) };
          },
        },
        {
          part: `${part}: whole encode`,
          shape: shape.name,
          make: (size) => {
            const body = shape.make(size);
            let events: readonly GatewayEvent[] = [];
            tolerant(() => (events = codec.decodeWhole(body, {})))();
            // As many documents as scores: what was asked for decides what is answered.
            const request = { documents: times(size, () => 'hello'), return_documents: true };
            const context = { ...contextOf(), body: request };
            return {
              bytes: bytesOf(body),
              run: tolerant(() => {
                const encoder = codec.encodeWhole(context);
                for (const event of events) encoder.event(event);
                return encoder.end();
              }),
            };
          },
        },
      ]),
    ];
  });
}

/** Text completions are asked of channels for chats, one call for each prompt. */
function promptWork(): Work[] {
  const codec = textCompletions.codecs.chat;
  if (codec === undefined) throw new Error('Text completions have no chats.');
  const shapes: readonly Shape[] = [
    list('one long word', (size) => ({ model: 'm', prompt: 'a'.repeat(64 * size) })),
    list('many prompts', (size) => ({ model: 'm', prompt: times(size, () => 'hello') })),
    list('many tokens', (size) => ({ model: 'm', prompt: times(size, (index) => index) })),
    unknown({ model: 'm', prompt: 'hello' }),
  ];
  return shapes.flatMap((shape) => [
    {
      part: 'text-completions: request decode',
      shape: shape.name,
      make: (size: number) => {
        const body = shape.make(size);
        return { bytes: bytesOf(body), run: tolerant(() => codec.validate(body, {})) };
      },
    },
    ...['text-completions', 'chat-completions', 'messages'].map((to) => ({
      part: `text-completions to ${to}: request encode`,
      shape: shape.name,
      make: (size: number) => {
        const body = shape.make(size);
        const request = codec.validate(body, {});
        const run = tolerant(() => chatCodecOf(to).encodeRequest(request, target()));
        return { bytes: bytesOf(body), run };
      },
    })),
  ]);
}

/** A part of a form. */
export interface Part {
  readonly name: string;
  readonly head?: string;
  readonly file?: boolean;
  readonly value: string;
}

/** A form as it goes over the wire. */
export function multipart(parts: readonly Part[]): Buffer {
  const text = parts.map(
    ({ name, head = '', file, value }) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"${file === true ? '; filename="a"' : ''}\r\n${head}\r\n${value}\r\n`,
  );
  return Buffer.from(`${text.join('')}--b--\r\n`);
}

/** Parts of forms. */
export const forms: readonly { readonly name: string; readonly most?: number; make(size: number): Part[] }[] =
  [
    { name: 'many fields', make: (size) => times(size, (index) => ({ name: `f${index}`, value: 'a' })) },
    { name: 'many fields of one name', make: (size) => times(size, () => ({ name: 'f[]', value: 'a' })) },
    { name: 'many empty fields', make: (size) => times(size, () => ({ name: 'f', value: '' })) },
    {
      name: 'many tiny files',
      most: 4000,
      make: (size) => times(size, () => ({ name: 'f', file: true, value: 'a' })),
    },
    { name: 'a long name', make: (size) => [{ name: 'n'.repeat(64 * size), value: 'a' }] },
    {
      name: 'a long head',
      make: (size) => [{ name: 'f', head: `x-a: ${'a'.repeat(64 * size)}\r\n`, value: 'a' }],
    },
    {
      name: 'many lines of a head',
      make: (size) => [{ name: 'f', head: 'x-a: b\r\n'.repeat(size), value: 'a' }],
    },
    {
      name: 'many long heads',
      make: (size) =>
        times(Math.ceil(size / 64), () => ({ name: 'f', head: `x-a: ${'a'.repeat(8000)}\r\n`, value: 'a' })),
    },
    { name: 'one long field', make: (size) => [{ name: 'f', value: 'a'.repeat(64 * size) }] },
    { name: 'one file', make: (size) => [{ name: 'f', file: true, value: 'a'.repeat(64 * size) }] },
    {
      name: 'a file of what begins like an end',
      make: (size) => [{ name: 'f', file: true, value: '\r\n--'.repeat(16 * size) }],
    },
  ];

const limits = { body: Infinity, file: Infinity, files: Infinity, fields: Infinity, inMemory: Infinity };

function formWork(): Work[] {
  return [
    ...forms.flatMap(({ name, most, make }) =>
      [64, 64 * 1024].map((read): Work => ({
        part: 'forms: read',
        shape: `${name}, in reads of ${read} bytes`,
        oneStep: false,
        // Where each field is a part: what is done with all of them shows late.
        least: 4096,
        ...(most === undefined ? {} : { most }),
        make: (size) => {
          const bytes = multipart(make(size));
          return {
            bytes: bytes.length,
            async run() {
              const chunks = times(Math.ceil(bytes.length / read), (index) =>
                bytes.subarray(index * read, (index + 1) * read),
              );
              const request = Object.assign(Readable.from(chunks, { objectMode: false }), {
                headers: { 'content-type': 'multipart/form-data; boundary=b' },
              }) as unknown as IncomingMessage;
              try {
                (await readForm(request, limits)).close();
              } catch (error) {
                if ((error as { status?: number }).status === undefined) throw error;
              }
            },
          };
        },
      })),
    ),
    ...['many images', 'unknown members'].map((name): Work => ({
      part: 'images: edit-image: form decode',
      shape: name,
      make: (size) => {
        const fields =
          name === 'unknown members' ? members(size) : { image: times(size, () => 'iVBORw0KGgo=') };
        const body = { model: 'm', prompt: 'a cat', ...fields };
        const params = formOf(body, []);
        const codec = images.codecs['edit-image'] as Codec;
        return { bytes: bytesOf(body), run: tolerant(() => codec.validate(body, params)) };
      },
    })),
  ];
}

const sentences: readonly { readonly name: string; make(size: number): string }[] = [
  { name: 'one long word', make: (size) => 'a'.repeat(64 * size) },
  { name: 'many dots', make: (size) => 'a.'.repeat(16 * size) },
  { name: 'many at signs', make: (size) => 'a@'.repeat(16 * size) },
  { name: 'many digits', make: (size) => '1.'.repeat(16 * size) },
  { name: 'many keys', make: (size) => 'sk-'.repeat(16 * size) },
  { name: 'blanks', make: (size) => ' '.repeat(64 * size) },
  { name: 'accounts without a number', make: (size) => 'user-aaaaaaa '.repeat(4 * size) },
  { name: 'braces', make: (size) => '{"error":'.repeat(4 * size) },
];

function errorWork(): Work[] {
  return sentences.flatMap(({ name, make }): Work[] => [
    {
      part: 'errors: redact a sentence',
      shape: name,
      make: (size) => {
        const text = make(size);
        return { bytes: text.length, run: () => redact(text) };
      },
    },
    {
      part: 'errors: read an answer',
      shape: name,
      make: (size) => {
        const text = JSON.stringify({ error: { message: make(size), type: 'invalid_request_error' } });
        return { bytes: text.length, run: () => upstreamError(400, text) };
      },
    },
    {
      part: 'usage log: redact a body',
      shape: name,
      make: (size) => {
        const text = JSON.stringify({ messages: [{ role: 'user', content: make(size) }] });
        const redacting = redactor(['**.secret', 'messages.*.name', '/\\d{16}/']);
        return { bytes: text.length, run: () => redacting.text(text) };
      },
    },
  ]);
}

/** Names of models are the caller's, patterns an operator's. */
function patternWork(): Work[] {
  const pairs: readonly { readonly name: string; make(size: number): readonly [string, string] }[] = [
    { name: 'a long name', make: (size) => ['a*b*c', 'a'.repeat(64 * size)] },
    { name: 'many stars', make: (size) => ['a*'.repeat(size), 'a'.repeat(4 * size)] },
    { name: 'a name that nearly fits', make: (size) => ['*aaaaaaab*', 'a'.repeat(64 * size)] },
  ];
  return pairs.flatMap(({ name, make }): Work[] => [
    {
      part: 'model patterns: matches',
      shape: name,
      make: (size) => {
        const [pattern, model] = make(size);
        const patterns = [pattern];
        return { bytes: pattern.length + model.length, run: () => matchesModel(patterns, model) };
      },
    },
    {
      part: 'model patterns: what the stars stand for',
      shape: name,
      make: (size) => {
        const [pattern, model] = make(size);
        return { bytes: pattern.length + model.length, run: () => starsOf(pattern, model) };
      },
    },
    {
      part: 'model patterns: two patterns',
      shape: name,
      make: (size) => {
        const [pattern, model] = make(size);
        const other = `${model}*${pattern}`;
        return { bytes: pattern.length + other.length, run: () => patternsOverlap(pattern, other) };
      },
    },
    {
      part: 'model patterns: many patterns',
      shape: name,
      make: (size) => {
        const patterns = times(size, (index) => `x${index}*`);
        return { bytes: 6 * size, run: () => matchesModel(patterns, make(1)[1]) };
      },
    },
  ]);
}

/** Work of operations other than chat. */
export const otherWork: readonly Work[] = [
  ...operationWork(),
  ...promptWork(),
  ...formWork(),
  ...errorWork(),
  ...patternWork(),
  ...refusalWork(),
];

/** Work whose steps can be counted, because it is synchronous and in the product's code. */
export const countedWork: readonly Work[] = [...codecWork, ...otherWork].filter(
  ({ except, part }) => except === undefined && part !== 'forms: read',
);
