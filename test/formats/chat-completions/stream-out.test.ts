import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { sealProof, unsealProof } from '../../../core/formats/_shared/proof.ts';
import { checkLegal } from '../../support/legal-chat-completions.ts';
import {
  censored,
  chunks,
  codec,
  context,
  decodeSse,
  deltasOf,
  encodeEvents,
  encodeWhole,
  encoder,
  failureOf,
  fixture,
  type GatewayEvent,
  type JsonObject,
} from './support.ts';
import { tries } from '../../support/tries.ts';

const head: GatewayEvent = { type: 'head', id: 'msg_01AbC', model: 'claude', created: 1_760_000_000 };
const finish = (reason: 'stop' | 'tool-calls' | 'refusal' = 'stop', choice = 0): GatewayEvent => ({
  type: 'finish',
  choice,
  reason,
});
const text = (words: string, block = 0, choice = 0): GatewayEvent[] => [
  { type: 'text-start', block, choice },
  { type: 'text-delta', block, choice, text: words },
  { type: 'text-end', block, choice },
];

const signed = (value: string) => ({ format: 'messages', kind: 'signature', value }) as const;

/** Any events of a reply, in any order, sane or not. */
const anyEvent: fc.Arbitrary<GatewayEvent> = fc.oneof(
  ...(['text', 'refusal', 'reasoning', 'tool', 'media'] as const).flatMap((kind) => {
    const block = fc.nat(3);
    const choice = fc.nat(1);
    const proof = { format: 'messages', kind: 'signature', value: 'c2ln' } as const;
    const words = fc.constantFrom('', 'a', '\n');
    return [
      fc.record({ block, choice }).map(({ block: b, choice: c }): GatewayEvent => {
        if (kind === 'tool')
          return { type: 'tool-start', block: b, choice: c, id: `call_${b % 2}`, name: 'f' };
        if (kind === 'media')
          return {
            type: 'media-start',
            block: b,
            choice: c,
            media: b === 0 ? 'audio' : b === 1 ? 'image' : 'video',
          };
        return { type: `${kind}-start`, block: b, choice: c };
      }),
      fc.record({ block, choice, words }).map(({ block: b, choice: c, words: w }): GatewayEvent => {
        if (kind === 'tool') return { type: 'tool-delta', block: b, choice: c, input: w };
        if (kind === 'media') return { type: 'media-delta', block: b, choice: c, data: 'AAAA' };
        return { type: `${kind}-delta`, block: b, choice: c, text: w };
      }),
      fc.record({ block, choice }).map(({ block: b, choice: c }): GatewayEvent => {
        if (kind === 'reasoning' && b > 1) return { type: 'reasoning-end', block: b, choice: c, proof };
        if (kind === 'text' && b > 2) return { type: 'text-end', block: b, choice: c, proof };
        return { type: `${kind}-end`, block: b, choice: c };
      }),
    ];
  }),
  fc.constant(head),
  fc
    .record({
      choice: fc.nat(1),
      reason: fc.constantFrom('stop', 'tool-calls', 'other', 'refusal', 'context-window'),
    })
    .map(({ choice, reason }): GatewayEvent => ({ type: 'finish', choice, reason }) as GatewayEvent),
  fc.constant<GatewayEvent>({
    type: 'usage',
    usage: { input: 3, output: 2, cacheRead: 1, cacheWrite: 0, reasoning: 1 },
  }),
  fc.constant<GatewayEvent>({
    type: 'citation',
    block: 0,
    choice: 0,
    citation: { url: 'https://example.com', title: 't' },
  }),
  fc.constant<GatewayEvent>({ type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } }),
  fc.constant<GatewayEvent>({
    type: 'opaque',
    format: 'chat-completions',
    value: { choices: [{ index: 0, delta: { x: 1 }, finish_reason: 'stop' }] },
  }),
  fc.constant<GatewayEvent>({ type: 'request', model: 'm', stream: true }),
);

describe('the client of a stream never sees an illegal sequence', () => {
  it('whatever events come, ended or broken off at any point', () => {
    fc.assert(
      fc.property(
        fc.array(anyEvent, { maxLength: 40 }),
        fc.boolean(),
        fc.boolean(),
        (events, breaks, asks) => {
          const stream = encoder(context({ body: asks ? { stream_options: { include_usage: true } } : {} }));
          const frames = events.flatMap((event) => [...stream.event(event)]);
          frames.push(...(breaks ? stream.error(new GatewayError('upstream_cut', 'Cut.')) : stream.end()));
          expect(checkLegal(frames)).toEqual([]);
          expect([
            ...stream.event(head),
            ...stream.end(),
            ...stream.error(new GatewayError('internal_error', 'x')),
          ]).toEqual([]);
        },
      ),
      { numRuns: tries(1500) },
    );
  });

  it('nor an illegal whole reply', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        const reply = encodeWhole(events, context({ body: {} }));
        expect(reply).toMatchObject({ object: 'chat.completion', model: 'm' });
        expect(reply.usage).toMatchObject({ total_tokens: expect.any(Number) as number });
        for (const choice of reply.choices as readonly JsonObject[]) {
          expect(choice.message).toHaveProperty('content');
          expect(choice.message).toHaveProperty('refusal');
          expect(choice).toHaveProperty('logprobs');
          expect(['stop', 'length', 'tool_calls', 'content_filter']).toContain(choice.finish_reason);
        }
      }),
      { numRuns: tries(500) },
    );
  });

  it('nor a call that begins twice, or goes on after its end', () => {
    const start: GatewayEvent = { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: 'f' };
    const more: GatewayEvent = { type: 'tool-delta', block: 0, choice: 0, input: '{}' };
    const end: GatewayEvent = { type: 'tool-end', block: 0, choice: 0 };
    const frames = encodeEvents([head, start, start, more, end, more, end, start, finish('tool-calls')]);
    expect(deltasOf(frames).slice(1, -1)).toEqual([
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
    ]);
  });

  it('when nothing came at all', () => {
    const frames = encodeEvents([]);
    expect(checkLegal(frames)).toEqual([]);
    expect(deltasOf(frames)).toEqual([{ role: 'assistant', content: '', refusal: null }, {}]);
  });
});

describe('usage in a stream', () => {
  const usage: GatewayEvent = {
    type: 'usage',
    usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
  };

  it('comes last and alone when the client asked for it, with null before', () => {
    const frames = chunks(encodeEvents([head, ...text('Hi'), finish(), usage]));
    expect(frames.at(-1)).toMatchObject({ choices: [] });
    expect(frames.at(-1)?.usage).toEqual({
      prompt_tokens: 100,
      completion_tokens: 30,
      total_tokens: 130,
      prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 20 },
    });
    expect(frames.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  it('is not told to a client that did not ask', () => {
    const frames = chunks(encodeEvents([head, ...text('Hi'), finish(), usage], context({ body: {} })));
    expect(frames.every((chunk) => !('usage' in chunk))).toBe(true);
  });

  it('is always told in a whole reply', () => {
    expect(encodeWhole([head, ...text('Hi'), finish()], context({ body: {} })).usage).toEqual({
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
  });
});

describe('a reply of another format', () => {
  it('has an id of this format, the client’s model name, and the time of the upstream or else the gateway’s', () => {
    const [first] = chunks(encodeEvents([head, ...text('Hi'), finish()], context({ model: 'asked-for' })));
    expect(first).toMatchObject({ id: 'chatcmpl-01AbC', model: 'asked-for', created: 1_760_000_000 });
    const [other] = chunks(encodeEvents(text('Hi')));
    expect(other?.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
    expect(other?.created).toBe(1_760_000_001);
  });

  it('brings reasoning as reasoning_content and its signature as an entry', () => {
    const events: GatewayEvent[] = [
      head,
      { type: 'reasoning-start', block: 0, choice: 0 },
      { type: 'reasoning-delta', block: 0, choice: 0, text: 'A' },
      {
        type: 'reasoning-end',
        block: 0,
        choice: 0,
        proof: { format: 'messages', kind: 'signature', value: 'c2ln' },
      },
      { type: 'reasoning-start', block: 1, choice: 0 },
      {
        type: 'reasoning-end',
        block: 1,
        choice: 0,
        proof: { format: 'messages', kind: 'encrypted', value: 'ZW5j' },
      },
      ...text('Hi', 2),
      finish(),
    ];
    expect(deltasOf(encodeEvents(events)).slice(1, -1)).toEqual([
      { reasoning_content: 'A' },
      {
        reasoning_details: [
          { type: 'reasoning.text', text: '', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
        ],
      },
      {
        reasoning_details: [
          { type: 'reasoning.encrypted', data: 'ZW5j', format: 'anthropic-claude-v1', index: 1 },
        ],
      },
      { content: 'Hi' },
    ]);
  });

  it('gets its proofs back with the next turn, block by block', () => {
    const reasoning = (block: number, words: string): GatewayEvent[] => [
      { type: 'reasoning-start', block, choice: 0 },
      { type: 'reasoning-delta', block, choice: 0, text: words },
      { type: 'reasoning-end', block, choice: 0, proof: signed(`sig-${block}`) },
    ];
    const odd = { format: 'another-vendor', kind: 'encrypted', value: 'b64' } as const;
    const events: GatewayEvent[] = [
      head,
      ...reasoning(0, 'First. '),
      ...reasoning(1, 'Second.'),
      { type: 'reasoning-start', block: 5, choice: 0 },
      { type: 'reasoning-end', block: 5, choice: 0, proof: odd },
      { type: 'text-start', block: 2, choice: 0 },
      { type: 'text-delta', block: 2, choice: 0, text: 'Hi' },
      {
        type: 'text-end',
        block: 2,
        choice: 0,
        proof: { format: 'generate-content', kind: 'signature', value: 'on-text' },
      },
      {
        type: 'tool-start',
        block: 3,
        choice: 0,
        id: 'call_1',
        name: 'f',
        proof: { format: 'generate-content', kind: 'signature', value: 'on-call' },
      },
      { type: 'tool-end', block: 3, choice: 0 },
      finish('tool-calls'),
    ];
    const reply = encodeWhole(events, context({ body: {} }));
    const [choice] = reply.choices as readonly { readonly message: JsonObject }[];
    const request = codec.decodeRequest(
      { model: 'm', messages: [{ role: 'user', content: 'x' }, choice?.message ?? {}] },
      {},
    );
    const blocks = request.messages[1]?.content ?? [];
    expect(blocks.map(({ type }) => type)).toEqual([
      'reasoning',
      'reasoning',
      'reasoning',
      'text',
      'tool-call',
    ]);
    expect(blocks[0]).toMatchObject({ text: 'First. ', proof: signed('sig-0') });
    expect(blocks[1]).toMatchObject({ text: 'Second.', proof: signed('sig-1') });
    expect(blocks[2]).toMatchObject({ text: '', proof: odd });
    expect(blocks[3]).toMatchObject({ text: 'Hi', proof: { format: 'generate-content', value: 'on-text' } });
    expect(blocks[4]).toMatchObject({
      id: 'call_1',
      input: '{}',
      proof: { format: 'generate-content', value: 'on-call' },
    });
  });

  it('numbers tool calls from 0 and gives a call without arguments an empty object', () => {
    const events: GatewayEvent[] = [
      head,
      ...text('Hi', 0),
      { type: 'tool-start', block: 4, choice: 0, id: 'toolu_1', name: 'f' },
      { type: 'tool-delta', block: 4, choice: 0, input: '{"a":1}' },
      { type: 'tool-end', block: 4, choice: 0 },
      { type: 'tool-start', block: 7, choice: 0, id: 'toolu_2', name: 'g' },
      { type: 'tool-end', block: 7, choice: 0 },
      finish('tool-calls'),
    ];
    const reply = encodeWhole(events, context({ body: {} }));
    expect(reply.choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Hi',
          refusal: null,
          annotations: [],
          tool_calls: [
            { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'toolu_2', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
  });

  it('reaches a client that knows only the deprecated functions', () => {
    const events: GatewayEvent[] = [
      head,
      { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: 'f' },
      { type: 'tool-delta', block: 0, choice: 0, input: '{"a":1}' },
      { type: 'tool-end', block: 0, choice: 0 },
      finish('tool-calls'),
    ];
    const reply = encodeWhole(events, context({ body: { functions: [] } }));
    expect(reply.choices).toMatchObject([
      {
        message: { content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
        finish_reason: 'function_call',
      },
    ]);
  });

  it('says once what it cannot say', () => {
    const to = context();
    encodeEvents(
      [
        head,
        { type: 'citation', block: 0, choice: 0, citation: { title: 'A book' } },
        { type: 'citation', block: 0, choice: 0, citation: { title: 'A book' } },
        { type: 'citation', block: 0, choice: 0, citation: { url: 'https://a', quote: 'words' } },
        { type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } },
        { type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } },
        { type: 'media-start', block: 1, choice: 0, media: 'video' },
        finish(),
      ],
      to,
    );
    expect(to.losses).toEqual(['citation', 'citation.quote', 'opaque.server_tool_use', 'media.video']);
  });

  it('brings a made image as a data URL, and a made sound with an id', () => {
    const events: GatewayEvent[] = [
      head,
      { type: 'media-start', block: 0, choice: 0, media: 'image', mimeType: 'image/webp' },
      { type: 'media-delta', block: 0, choice: 0, data: 'UklG' },
      { type: 'media-delta', block: 0, choice: 0, data: 'RgAA' },
      { type: 'media-end', block: 0, choice: 0 },
      { type: 'media-start', block: 1, choice: 0, media: 'audio', mimeType: 'audio/wav' },
      { type: 'media-delta', block: 1, choice: 0, data: 'AAA=', transcript: 'Hel' },
      { type: 'media-delta', block: 1, choice: 0, data: 'AAAA', transcript: 'lo' },
      { type: 'media-end', block: 1, choice: 0 },
      finish(),
    ];
    const [choice] = encodeWhole(events, context({ body: {} })).choices as readonly {
      readonly message: JsonObject;
    }[];
    expect(choice?.message.images).toEqual([
      { type: 'image_url', image_url: { url: 'data:image/webp;base64,UklGRgAA' } },
    ]);
    const audio = choice?.message.audio as JsonObject;
    expect(audio).toMatchObject({ transcript: 'Hello', expires_at: 1_760_000_001 });
    expect(audio.id).toMatch(/^audio_/);
    expect(Buffer.from(String(audio.data), 'base64')).toEqual(Buffer.alloc(5));
  });
});

describe('a reply of this format whose events a plugin edited', () => {
  it('shows the edit in every copy of the reasoning', () => {
    const events = censored(decodeSse(fixture('streams/openrouter-details.sse')), 'reasoning-delta');
    expect(JSON.stringify(encodeEvents(events))).not.toContain('Look');
  });

  it('shows the edit of the text', () => {
    const events = censored(decodeSse(fixture('streams/logprobs.sse')), 'text-delta');
    expect(deltasOf(encodeEvents(events)).slice(1, 3)).toEqual([{ content: '***' }, { content: '***' }]);
  });
});

describe('a broken reply', () => {
  it('ends with the error frame and nothing else', () => {
    const stream = encoder();
    const frames = [
      ...stream.event(head),
      ...stream.error(
        new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' }),
      ),
    ];
    expect(frames.at(-1)).toEqual({
      json: {
        error: {
          message: 'The upstream closed the connection.',
          type: 'server_error',
          param: null,
          code: 'upstream_cut',
        },
      },
    });
    expect(stream.end()).toEqual([]);
  });

  it('keeps silent in a silence: a comment is the framing’s affair', () => {
    expect(encoder().keepAlive()).toEqual([]);
  });
});

describe('whole replies that are none', () => {
  it.each([
    ['{"error":{"message":"Busy","code":"server_is_overloaded"}}', 'server_is_overloaded'],
    ['{"message":"It broke"}', 'upstream_error'],
    ['{"code":1001,"msg":"It broke"}', 'upstream_error'],
    ['{"id":"x","choices":[]}', 'upstream_error'],
    ['{}', 'upstream_error'],
  ])('%s', (body, code) => {
    const error = failureOf(() => codec.decodeWhole(JSON.parse(body) as JsonObject, {}));
    expect(error).toMatchObject({ code, origin: 'upstream' });
  });
});

describe('sealed proofs', () => {
  it('open to what they were', () => {
    const proof = { format: 'another-vendor', kind: 'encrypted', value: 'b64' } as const;
    expect(unsealProof(sealProof(proof, 'tool-call'))).toEqual({ proof, on: 'tool-call' });
  });
});
