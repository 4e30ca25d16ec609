import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GoogleGenAI } from '@google/genai';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { unsealProof } from '../../../core/formats/_shared/proof.ts';
import { writeSse } from '../../../core/formats/_shared/sse.ts';
import type { FinishReason, GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { chat, chunks, context, encode, encodeWhole } from './support.ts';

const at = { block: 0, choice: 0 };
const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
};
const stop: GatewayEvent = { type: 'finish', choice: 0, reason: 'stop', raw: 'end_turn', format: 'messages' };
const head: GatewayEvent = { type: 'head', id: 'msg_01AbC', model: 'upstream' };
const answer: GatewayEvent[] = [
  head,
  { type: 'reasoning-start', ...at },
  { type: 'reasoning-delta', ...at, text: 'Tokyo.' },
  { type: 'reasoning-end', ...at, proof: { format: 'messages', kind: 'signature', value: 'EqQB' } },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'It is ' },
  { type: 'text-delta', block: 1, choice: 0, text: '09:30.' },
  { type: 'text-end', block: 1, choice: 0 },
  stop,
  usage,
];

interface Candidate {
  content?: { parts: JsonObject[]; role: string };
  finishReason?: string;
  groundingMetadata?: JsonObject;
  logprobsResult?: JsonObject;
}
const partsOf = (reply: JsonObject): JsonObject[] =>
  (reply.candidates as unknown as Candidate[])[0]?.content?.parts ?? [];
const wholeOf = (events: GatewayEvent[], reply = context()): Candidate =>
  (encodeWhole([head, ...events], reply).candidates as unknown as Candidate[])[0] ?? {};

describe('an answer of another provider', () => {
  test('comes piece by piece, usage with the end', () => {
    const sent = chunks(encode(answer));
    expect(sent.map((chunk) => partsOf(chunk))).toEqual([
      [{ text: 'Tokyo.', thought: true }],
      [{ text: '', thought: true, thoughtSignature: expect.stringMatching(/^Z3cxL/) }],
      [{ text: 'It is ' }],
      [{ text: '09:30.' }],
      [{ text: '' }],
    ]);
    expect(sent.map((chunk) => chunk.usageMetadata !== undefined)).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(new Set(sent.map(({ responseId, modelVersion }) => `${responseId} ${modelVersion}`))).toEqual(
      new Set(['01AbC gemini-x-1']),
    );
    expect(sent.at(-1)).toMatchObject({ candidates: [{ finishReason: 'STOP', index: 0 }] });
  });

  test('the golden usage and the whole', () => {
    const whole = encodeWhole(answer);
    expect(whole).toEqual({
      candidates: [
        {
          content: {
            parts: [
              { text: 'Tokyo.', thought: true, thoughtSignature: expect.any(String) },
              { text: 'It is 09:30.' },
            ],
            role: 'model',
          },
          finishReason: 'STOP',
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: 100,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 10,
        thoughtsTokenCount: 20,
        totalTokenCount: 130,
      },
      modelVersion: 'gemini-x-1',
      responseId: '01AbC',
    });
  });

  test('another vendor’s proof travels sealed, as legal base64', () => {
    const signature = String(partsOf(encodeWhole(answer))[0]?.thoughtSignature);
    expect(Buffer.from(signature, 'base64').toString('base64')).toBe(signature);
    expect(unsealProof(Buffer.from(signature, 'base64').toString())?.proof).toEqual({
      format: 'messages',
      kind: 'signature',
      value: 'EqQB',
    });
  });

  test('a hidden thought is an empty thought with its proof', () => {
    const events: GatewayEvent[] = [
      { type: 'reasoning-start', ...at },
      { type: 'reasoning-end', ...at, proof: { format: 'responses', kind: 'encrypted', value: 'gAAA' } },
      stop,
    ];
    expect(wholeOf(events).content?.parts).toEqual([
      { text: '', thought: true, thoughtSignature: expect.any(String) },
    ]);
  });

  test('parallel calls that interleave come whole, one part each', () => {
    const events: GatewayEvent[] = [
      { type: 'tool-start', ...at, id: 'call_1', name: 'f' },
      { type: 'tool-start', block: 1, choice: 0, id: 'call_2', name: 'g' },
      { type: 'tool-delta', ...at, input: '{"x"' },
      { type: 'tool-delta', block: 1, choice: 0, input: '{}' },
      { type: 'tool-delta', ...at, input: ':1}' },
      { type: 'tool-end', ...at },
      { type: 'tool-end', block: 1, choice: 0 },
      { type: 'finish', choice: 0, reason: 'tool-calls' },
    ];
    expect(chunks(encode([head, ...events])).flatMap((chunk) => partsOf(chunk))).toEqual([
      { functionCall: { id: 'call_1', name: 'f', args: { x: 1 } } },
      { functionCall: { id: 'call_2', name: 'g', args: {} } },
      { text: '' },
    ]);
    expect(wholeOf(events).finishReason).toBe('STOP');
  });

  test('a call without arguments, with broken ones, and one that was never closed', () => {
    const call = (input: string): GatewayEvent[] => [
      { type: 'tool-start', ...at, id: 'a', name: 'f' },
      ...(input === '' ? [] : [{ type: 'tool-delta', ...at, input } as const]),
      stop,
    ];
    const calls = ['', '{"a":', '[1]'].map((input) => wholeOf(call(input)).content?.parts[0]?.functionCall);
    expect(calls).toMatchObject([{ args: {} }, { args: { _raw: '{"a":' } }, { args: { _raw: '[1]' } }]);
  });

  test('refusals are words, ending for safety', () => {
    const events: GatewayEvent[] = [
      { type: 'refusal-start', ...at },
      { type: 'refusal-delta', ...at, text: 'I will not.' },
      { type: 'refusal-end', ...at },
      { type: 'finish', choice: 0, reason: 'refusal' },
    ];
    expect(wholeOf(events)).toMatchObject({
      content: { parts: [{ text: 'I will not.' }] },
      finishReason: 'SAFETY',
    });
  });

  test('sources become grounding, with byte offsets', () => {
    const cite = (citation: object): GatewayEvent => ({ type: 'citation', ...at, citation });
    const events: GatewayEvent[] = [
      { type: 'text-start', ...at },
      { type: 'text-delta', ...at, text: 'España ganó.' },
      cite({ url: 'https://a.example', title: 'A', start: 7, end: 11 }),
      cite({ url: 'https://a.example', title: 'A', start: 0, end: 6 }),
      cite({ title: 'Paper', quote: 'ganó' }),
      { type: 'text-end', ...at },
      stop,
    ];
    expect(wholeOf(events).groundingMetadata).toEqual({
      groundingChunks: [
        { web: { uri: 'https://a.example', title: 'A' } },
        { retrievedContext: { title: 'Paper', text: 'ganó' } },
      ],
      groundingSupports: [
        { segment: { startIndex: 8, endIndex: 13, text: 'ganó' }, groundingChunkIndices: [0] },
        { segment: { endIndex: 7, text: 'España' }, groundingChunkIndices: [0] },
      ],
    });
  });

  test('log probabilities of all pieces', () => {
    const delta = (text: string, logprob: number): GatewayEvent => ({
      type: 'text-delta',
      ...at,
      text,
      logprobs: [{ token: text, logprob, top: [{ token: text, logprob }] }],
    });
    expect(wholeOf([delta('a', -1), delta('b', -2), stop]).logprobsResult).toEqual({
      chosenCandidates: [
        { token: 'a', logProbability: -1 },
        { token: 'b', logProbability: -2 },
      ],
      topCandidates: [
        { candidates: [{ token: 'a', logProbability: -1 }] },
        { candidates: [{ token: 'b', logProbability: -2 }] },
      ],
    });
  });

  test('images and sounds', () => {
    const media = (more: Partial<Extract<GatewayEvent, { type: 'media-start' }>>, ...rest: GatewayEvent[]) =>
      wholeOf([{ type: 'media-start', ...at, media: 'image', ...more }, ...rest, stop]).content?.parts;
    expect(
      media(
        {},
        { type: 'media-delta', ...at, data: 'iVBORw0KGgoA' },
        { type: 'media-delta', ...at, data: 'AAAA' },
        { type: 'media-end', ...at },
      ),
    ).toEqual([{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgoAAAAA' } }]);
    expect(media({}, { type: 'media-end', ...at, url: 'https://a.example/x' })).toEqual([
      { fileData: { fileUri: 'https://a.example/x' } },
    ]);
    expect(
      media(
        { media: 'audio', mimeType: 'audio/mp3' },
        { type: 'media-delta', ...at, data: 'AAAA' },
        { type: 'media-end', ...at },
      ),
    ).toEqual([{ inlineData: { mimeType: 'audio/mp3', data: 'AAAA' } }]);
    // Each piece has padding of its own, behind which base64 cannot go on.
    expect(
      media(
        { media: 'audio', mimeType: 'audio/mp3' },
        ...['aGVs', 'bG8=', 'd29', 'ybGQ='].map((data): GatewayEvent => ({
          type: 'media-delta',
          ...at,
          data,
        })),
        { type: 'media-end', ...at },
      ),
    ).toEqual([{ inlineData: { mimeType: 'audio/mp3', data: 'aGVsbG93b3JsZA==' } }]);
    expect(media({}, { type: 'media-end', ...at })).toEqual([]);
  });

  test('every reason has a word', () => {
    const word = (reason: FinishReason) => wholeOf([{ type: 'finish', choice: 0, reason }]).finishReason;
    expect(
      (
        [
          'stop',
          'stop-sequence',
          'length',
          'context-window',
          'tool-calls',
          'content-filter',
          'refusal',
          'pause',
          'compaction',
          'malformed',
          'other',
        ] as const
      ).map(word),
    ).toEqual([
      'STOP',
      'STOP',
      'MAX_TOKENS',
      'MAX_TOKENS',
      'STOP',
      'SAFETY',
      'SAFETY',
      'STOP',
      'STOP',
      'MALFORMED_FUNCTION_CALL',
      'OTHER',
    ]);
  });

  test('what has no place is reported once', () => {
    const reply = context();
    encode(
      [
        { ...head, extra: { 'chat-completions': { system_fingerprint: 'fp' } } } as GatewayEvent,
        { type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } },
        { type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } },
        { type: 'media-start', ...at, media: 'audio' },
        { type: 'media-delta', ...at, transcript: 'la' },
        { type: 'finish', choice: 0, reason: 'stop-sequence', stopSequence: 'END' },
      ],
      reply,
    );
    expect(reply.losses).toEqual([
      'system_fingerprint',
      'opaque.server_tool_use',
      'transcript',
      'stopSequence',
    ]);
  });

  test('ids: another format’s prefix goes, none at all is made up once', () => {
    const id = (given: string) => encodeWhole([{ type: 'head', id: given, model: 'x' }, stop]).responseId;
    expect([id('chatcmpl-9x'), id('resp_9x'), id('mAitaLm')]).toEqual(['9x', '9x', 'mAitaLm']);
    const sent = chunks(encode(answer.slice(1)));
    expect(new Set(sent.map(({ responseId }) => responseId)).size).toBe(1);
    expect(String(sent[0]?.responseId)).toMatch(/^[\w-]{20,24}$/);
  });

  test('nothing at all is still an answer that ends', () => {
    expect(chunks(encode([]))).toMatchObject([
      { candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, finishReason: 'STOP', index: 0 }] },
    ]);
    expect(encodeWhole([])).toMatchObject({
      candidates: [{ content: { parts: [], role: 'model' }, finishReason: 'STOP' }],
    });
  });

  test('a break in the middle is said in the stream, and nothing after it', () => {
    const encoder = chat.encodeStream!(context());
    encoder.event(head);
    encoder.event({ type: 'text-delta', ...at, text: 'so far' });
    const frames = encoder.error(new GatewayError('server_is_overloaded', 'Busy.'));
    expect(chunks(frames)).toEqual([{ error: { code: 503, message: 'Busy.', status: 'UNAVAILABLE' } }]);
    expect([
      ...encoder.event(stop),
      ...encoder.end(),
      ...encoder.error(new GatewayError('internal_error', 'x')),
    ]).toEqual([]);
  });
});

describe('the official SDK', () => {
  async function withServer<T>(
    body: string,
    type: string,
    work: (client: GoogleGenAI) => Promise<T>,
  ): Promise<T> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': type }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      return await work(
        new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: `http://127.0.0.1:${port}` } }),
      );
    } finally {
      server.close();
    }
  }

  test('reads the stream and keeps the answer in its history', async () => {
    const called: GatewayEvent[] = [
      ...answer.slice(0, -2),
      { type: 'tool-start', block: 2, choice: 0, id: 'call_1', name: 'f' },
      { type: 'tool-end', block: 2, choice: 0 },
      ...answer.slice(-2),
    ];
    const text = encode(called).map(writeSse).join('');
    await withServer(text, 'text/event-stream', async (client) => {
      const session = client.chats.create({ model: 'gemini-x-1' });
      let streamed = '';
      let calls = 0;
      for await (const chunk of await session.sendMessageStream({ message: 'Time?' })) {
        streamed +=
          chunk.candidates?.[0]?.content?.parts
            ?.filter(({ thought }) => thought !== true)
            .map((part) => part.text ?? '')
            .join('') ?? '';
        calls += chunk.functionCalls?.length ?? 0;
      }
      expect([streamed, calls]).toEqual(['It is 09:30.', 1]);
      const kept = session.getHistory(true).flatMap(({ parts }) => parts ?? []);
      expect(kept.map((part) => part.text ?? part.functionCall?.name)).toContain('It is ');
      expect(kept.some((part) => part.functionCall?.name === 'f')).toBe(true);
    });
  });

  test('reads the whole reply', async () => {
    await withServer(JSON.stringify(encodeWhole(answer)), 'application/json', async (client) => {
      const reply = await client.models.generateContent({ model: 'gemini-x-1', contents: 'Time?' });
      expect([reply.text, reply.usageMetadata?.totalTokenCount]).toEqual(['It is 09:30.', 130]);
    });
  });

  test('raises the error of a broken stream', async () => {
    const encoder = chat.encodeStream!(context());
    const frames = [
      ...encoder.event({ type: 'text-delta', ...at, text: 'so' }),
      ...encoder.error(new GatewayError('upstream_cut', 'Cut.')),
    ];
    await withServer(frames.map(writeSse).join(''), 'text/event-stream', async (client) => {
      const read = async (): Promise<void> => {
        const stream = await client.models.generateContentStream({ model: 'm', contents: 'x' });
        for await (const chunk of stream) expect(chunk.candidates).toHaveLength(1);
      };
      await expect(read()).rejects.toThrow(/Cut/);
    });
  });
});
