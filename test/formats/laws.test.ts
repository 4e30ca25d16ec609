import { describe, expect, it, test } from 'vitest';
import { argumentsObject } from '../../core/formats/_shared/call-arguments.ts';
import { inClientWords } from '../../core/formats/_shared/client-words.ts';
import { GatewayError } from '../../core/errors.ts';
import type { ToolNames } from '../../core/formats/_shared/tool-ids.ts';
import type { Codec, EncodeTarget, ReplyContext, RouteParams, WireFrame } from '../../core/formats/format.ts';
import { parseSse, writeSse } from '../../core/http/sse.ts';
import type { ChatRequest } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { allFormats, fixturesOf, requestOf } from '../support/fixtures.ts';
import { checkLegal as chatLegal } from '../support/legal-chat-completions.ts';
import { checkLegal as generateLegal } from '../support/legal-generate-content.ts';
import { checkLegal as messagesLegal } from '../support/legal-messages.ts';
import { checkLegal as responsesLegal } from '../support/legal-responses.ts';
import { checkLegal as textLegal } from '../support/legal-text-completions.ts';
import { differences } from '../support/meaning.ts';

const formats = await allFormats();
const names = formats.map(({ name }) => name);
/** A channel of text completions takes no conversation: test/formats/text-completions says what it refuses. */
const pairs = names.flatMap((from) =>
  names.filter((to) => to !== from && to !== 'text-completions').map((to) => [from, to] as const),
);
const legal: Readonly<Record<string, (frames: WireFrame[]) => string[]>> = {
  'chat-completions': chatLegal,
  messages: messagesLegal,
  'generate-content': generateLegal,
  responses: responsesLegal,
  'text-completions': textLegal,
};

function codecOf(name: string): Codec<ChatRequest> {
  const codec = formats.find((format) => format.name === name)?.codecs.chat;
  if (codec === undefined) throw new Error(`no format ${name}`);
  return codec;
}

function target(losses: string[], stream: boolean): EncodeTarget {
  return {
    model: 'm',
    stream,
    traits: {},
    headers: {},
    unsupported: 'refuse',
    lose: (path) => losses.push(path),
  };
}

function context(model: string, losses: string[] = []): ReplyContext {
  return {
    model,
    body: { stream_options: { include_usage: true } },
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 7,
    lose: (path) => losses.push(path),
  };
}

function decodeStream(codec: Codec<ChatRequest>, text: string): GatewayEvent[] {
  const decoder = codec.decodeStream?.({});
  if (decoder === undefined) throw new Error('no stream');
  return [...parseSse(text).flatMap((frame) => [...decoder.frame(frame)]), ...decoder.end()];
}

function encodeStream(
  codec: Codec<ChatRequest>,
  events: readonly GatewayEvent[],
  model = 'm',
  losses: string[] = [],
): WireFrame[] {
  const encoder = codec.encodeStream?.(context(model, losses));
  if (encoder === undefined) throw new Error('no stream');
  return [...events.flatMap((event) => [...encoder.event(event)]), ...encoder.end()];
}

function whole(
  codec: Codec<ChatRequest>,
  events: readonly GatewayEvent[],
  model = 'm',
  losses: string[] = [],
): JsonObject {
  const encoder = codec.encodeWhole(context(model, losses));
  for (const event of events) encoder.event(event);
  return encoder.end();
}

/** What a reply says, in no format's words: what must be the same whoever carried it. */
function said(events: readonly GatewayEvent[]): {
  text: string;
  reasoning: string;
  calls: string[];
  finish: string[];
} {
  const calls = new Map<number, string>();
  const custom = new Set<number>();
  let text = '';
  let reasoning = '';
  const finish: string[] = [];
  for (const event of events) {
    if ('choice' in event && event.choice !== 0) continue;
    if (event.type === 'text-delta' || event.type === 'refusal-delta') text += event.text;
    if (event.type === 'reasoning-delta') reasoning += event.text;
    if (event.type === 'tool-start') {
      if (event.custom === true) custom.add(event.block);
      calls.set(event.block, `${event.name} `);
    }
    if (event.type === 'tool-delta') calls.set(event.block, (calls.get(event.block) ?? '') + event.input);
    if (event.type === 'finish') finish.push(event.reason);
  }
  return {
    text,
    reasoning,
    calls: [...calls].map(([block, call]) => (custom.has(block) ? wrapped(call) : normalCall(call))),
    finish,
  };
}

/** Formats without free-text tools carry the text as an argument. */
function wrapped(call: string): string {
  const space = call.indexOf(' ');
  return `${call.slice(0, space)} ${JSON.stringify({ input: call.slice(space + 1) })}`;
}

/** Arguments that were cut travel with their text where arguments must be an object. */
function normalCall(call: string): string {
  const space = call.indexOf(' ');
  return `${call.slice(0, space)} ${JSON.stringify(argumentsObject(call.slice(space + 1)))}`;
}

describe.each(names)('law 1, there and back: %s', (name) => {
  const codec = codecOf(name);

  it.each(fixturesOf(name, 'requests', '.json'))('request $name comes back as it was', (fixture) => {
    const { params, body } = requestOf(fixture);
    const losses: string[] = [];
    const { model, stream } = codec.peek(body, params);
    const encoded = codec.encodeRequest(codec.decodeRequest(body, params), {
      ...target(losses, stream),
      model,
    });
    expect(encoded.body).toEqual(withoutNulls(body));
    expect(losses).toEqual([]);
  });

  it.each(fixturesOf(name, 'replies', '.json'))('whole reply $name comes back as it was', (fixture) => {
    const body = JSON.parse(fixture.text) as JsonObject;
    const model = String(body.model ?? body.modelVersion ?? 'm');
    expect(whole(codec, codec.decodeWhole(body, {}), model)).toEqual(body);
  });

  it.each(fixturesOf(name, 'streams', '.sse'))(
    'stream $name says the same when it is decoded and encoded',
    (fixture) => {
      const events = decodeStream(codec, fixture.text);
      const frames = encodeStream(codec, events);
      expect(legal[name]?.(frames)).toEqual([]);
      expect(said(decodeStream(codec, frames.map(writeSse).join('')))).toEqual(said(events));
    },
  );
});

describe.each(pairs)('law 2, honest loss: %s to a %s channel', (from, to) => {
  const source = codecOf(from);
  const other = codecOf(to);

  it.each(fixturesOf(from, 'requests', '.json'))(
    'request $name loses exactly what is reported',
    (fixture) => {
      const { params, body } = requestOf(fixture);
      const request = source.decodeRequest(body, params);
      const losses: string[] = [];
      let encoded;
      try {
        encoded = other.encodeRequest(request, target(losses, request.stream));
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError);
        expect((error as GatewayError).status).toBe(400);
        expect((error as GatewayError).param).toBeTruthy();
        return;
      }
      const decoded = other.decodeRequest(encoded.body, paramsOf(encoded.path));
      const back = { ...decoded, ...respelled(decoded, encoded.toolNames) };
      const reported = new Set(losses.map((path) => inClientWords(source, path)));
      const differing = differences(request, back).map((path) => inClientWords(source, path));
      expect(
        differing.filter((path) => !covered(path, reported)),
        'differs in silence',
      ).toEqual([]);
      expect(
        [...reported].filter(
          (path) => !differing.some((one) => covered(one, new Set([path])) || covered(path, new Set([one]))),
        ),
        'reported but carried',
      ).toEqual([]);
    },
  );

  it.each(fixturesOf(from, 'streams', '.sse'))(
    'stream $name reaches a client of the other format as a legal stream with the same meaning',
    (fixture) => {
      const events = decodeStream(source, fixture.text);
      const losses: string[] = [];
      const frames = encodeStream(other, events, 'm', losses);
      expect(legal[to]?.(frames)).toEqual([]);
      const carried = said(decodeStream(other, frames.map(writeSse).join('')));
      const original = said(events);
      expect(carried.text).toBe(original.text);
      expect(carried.reasoning).toBe(original.reasoning);
      expect(carried.calls).toEqual(original.calls);
      expect(whole(other, events)).toBeTypeOf('object');
    },
  );
});

/** Formats that have no stop sequences. */
const stopless: ReadonlySet<string> = new Set(['responses']);

describe.each(pairs)('law 2, settings and turns of a plain conversation: %s to %s', (from, to) => {
  it('are carried without any loss', () => {
    const request: ChatRequest = {
      operation: 'chat',
      format: from,
      model: 'm',
      stream: false,
      system: [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }], plain: true }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }], plain: true }],
      tools: [
        {
          type: 'function',
          name: 'f',
          description: 'd',
          schema: { type: 'object', properties: { x: { type: 'string' } } },
        },
      ],
      settings: { maxOutput: 100, temperature: 0.5, ...(stopless.has(to) ? {} : { stop: ['END'] }) },
    };
    const losses: string[] = [];
    const codec = codecOf(to);
    const { body, path } = codec.encodeRequest(request, target(losses, false));
    expect(losses).toEqual([]);
    expect(differences(request, codec.decodeRequest(body, paramsOf(path)))).toEqual([]);
  });
});

test.each(pairs)(
  'a picture that a %s client calls image/jpg reaches a %s provider as image/jpeg',
  (from, to) => {
    const picture = {
      type: 'image',
      source: { kind: 'data', mimeType: 'image/jpg', data: '/9j/4AAQ' },
    } as const;
    const request: ChatRequest = {
      operation: 'chat',
      format: from,
      model: 'm',
      stream: false,
      system: [],
      messages: [{ role: 'user', content: [picture] }],
      tools: [],
      settings: { maxOutput: 10 },
    };
    const sent = JSON.stringify(codecOf(to).encodeRequest(request, target([], false)).body);
    expect(sent).toContain('image/jpeg');
    expect(sent).not.toContain('image/jpg');
  },
);

/** Tools and calls under the client's names. */
function respelled(
  request: ChatRequest,
  spelling: ToolNames | undefined,
): Pick<ChatRequest, 'tools' | 'messages'> {
  if (spelling === undefined) return request;
  const tools = request.tools.map(
    (tool) => (tool.name === undefined ? tool : { ...tool, name: spelling.back(tool.name) }) as typeof tool,
  );
  const messages = request.messages.map((message) => ({
    ...message,
    content: message.content.map((block) =>
      block.type === 'tool-call' ? { ...block, name: spelling.back(block.name) } : block,
    ),
  }));
  return { tools, messages };
}

/** `null` means "not given" in every format. */
function withoutNulls(body: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(body), (_key, value: unknown) =>
    value === null ? undefined : value,
  ) as JsonObject;
}

function paramsOf(path: string): RouteParams {
  const model = /\/models\/(.+):(\w+)$/.exec(path);
  return model === null
    ? {}
    : { model: decodeURIComponent(model[1] ?? ''), stream: model[2] === 'streamGenerateContent' };
}

/** A loss covers what it names and everything below it. */
function covered(path: string, reported: ReadonlySet<string>): boolean {
  if (reported.has(path)) return true;
  return [...reported].some(
    (one) => one !== '' && (path.startsWith(`${one}.`) || path.startsWith(`${one}[`)),
  );
}
