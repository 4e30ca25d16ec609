import * as fc from 'fast-check';
import { Observable } from 'rxjs';
import { describe, expect, it, test } from 'vitest';
import { argumentsObject } from '../../core/json/arguments.ts';
import { inClientWords } from '../../plugins/translation/client-words.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type {
  Codec,
  EncodeTarget,
  ReplyContext,
  RouteParams,
  WireFrame,
  EncodedRequest,
} from '../../core/sdk/format.ts';
import { parseSse, writeSse } from '../../core/formats/_shared/sse.ts';
import type { ChatRequest } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { allFormats, fixturesOf, requestOf } from '../support/fixtures.ts';
import { checkLegal as chatLegal } from '../support/legal-chat-completions.ts';
import { checkLegal as converseLegal } from '../support/legal-converse.ts';
import { checkLegal as generateLegal } from '../support/legal-generate-content.ts';
import { checkLegal as messagesLegal } from '../support/legal-messages.ts';
import { checkLegal as responsesLegal } from '../support/legal-responses.ts';
import { checkLegal as textLegal } from '../support/legal-text-completions.ts';
import { decodeReply } from '../../plugins/translation/decode-reply.ts';
import { differences } from '../support/meaning.ts';
import {
  streamOf,
  reportedUsage,
  wholeOf,
  type Answer,
  type ReplyPart,
} from '../support/provider-replies.ts';
import { tries } from '../support/tries.ts';

const formats = await allFormats();
const names = formats.map(({ name }) => name);
/** A channel of text completions takes no conversation: test/formats/text-completions says what it refuses. */
const pairs = names.flatMap((from) =>
  names.filter((to) => to !== from && to !== 'text-completions').map((to) => [from, to] as const),
);
const legal: Readonly<Record<string, (frames: WireFrame[]) => string[]>> = {
  'chat-completions': chatLegal,
  converse: converseLegal,
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
    drop: (path) => losses.push(path),
  };
}

function context(model: string, losses: string[] = []): ReplyContext {
  return {
    model,
    body: { stream_options: { include_usage: true } },
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 7,
    drop: (path) => losses.push(path),
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

/** Returns the content of a reply, independent of its format. */
function summary(events: readonly GatewayEvent[]): {
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
      expect(summary(decodeStream(codec, frames.map(writeSse).join('')))).toEqual(summary(events));
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
      const carried = summary(decodeStream(other, frames.map(writeSse).join('')));
      const original = summary(events);
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
    expect(sent).toMatch(/image\/jpeg|"format":"jpeg"/);
    expect(sent).not.toContain('image/jpg');
  },
);

/** Tools and calls under the client's names. */
function respelled(
  request: ChatRequest,
  spelling: EncodedRequest['toolNames'],
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
  const converse = /^\/model\/(.+)\/(converse(?:-stream)?)$/.exec(path);
  if (converse !== null)
    return { model: decodeURIComponent(converse[1] ?? ''), stream: converse[2] === 'converse-stream' };
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

const chatFormats = ['chat-completions', 'messages', 'generate-content', 'responses', 'converse'] as const;

/** Words that JSON, escapes and cuts in a character's middle can do something to. */
const prose = fc
  .array(fc.constantFrom('Hi', ' there', '"', '\\', '\n', 'é', '🙂', '{', '}', '0'), {
    minLength: 1,
    maxLength: 6,
  })
  .map((all) => `w${all.join('')}w`);
const object = fc
  .dictionary(
    fc.constantFrom('a', 'b', 'path', 'x.y', 'ü'),
    fc.oneof(
      prose,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(prose, { minLength: 1, maxLength: 2 }),
    ),
    { maxKeys: 4 },
  )
  .map((value) => JSON.stringify(value));
const replyPart: fc.Arbitrary<ReplyPart> = fc.oneof(
  fc.record({ kind: fc.constantFrom('text', 'reasoning'), text: prose }),
  fc.record({ kind: fc.constant('call'), name: fc.constantFrom('read', 'write'), input: object }),
);

/** Neighbours of one kind are one: formats differ in where one text ends and the next begins. */
function joined(all: readonly ReplyPart[]): ReplyPart[] {
  const kept: ReplyPart[] = [];
  for (const one of all) {
    const last = kept.at(-1);
    if (last !== undefined && last.kind !== 'call' && last.kind === one.kind)
      kept[kept.length - 1] = { kind: one.kind, text: last.text + one.text };
    else kept.push(one);
  }
  return kept;
}

const answers: fc.Arbitrary<Answer> = fc
  .record({
    parts: fc.array(replyPart, { minLength: 1, maxLength: 5 }).map(joined),
    end: fc.constantFrom('stop', 'length', 'filter'),
    usageReport: fc.constantFrom('nothing', 'zeros', 'all'),
    pieces: fc.integer({ min: 1, max: 4 }),
    streamsArguments: fc.boolean(),
  })
  .chain((answer) => {
    // The limit may cut the last call in its middle.
    const last = answer.parts.at(-1);
    if (answer.end !== 'length' || last?.kind !== 'call') return fc.constant(answer);
    return fc.nat({ max: last.input.length }).map((at) => ({
      ...answer,
      parts: [...answer.parts.slice(0, -1), { ...last, input: last.input.slice(0, at) }],
    }));
  });

/** Everything that events say, in its order; arguments as the object that they are in formats that want one. */
function partsIn(events: readonly GatewayEvent[]): ReplyPart[] {
  const found: { kind: ReplyPart['kind']; name: string; text: string }[] = [];
  const byBlock = new Map<number, (typeof found)[number]>();
  for (const event of events) {
    const kind = /^(text|reasoning|tool)-start$/.exec(event.type)?.[1];
    if (kind !== undefined && 'block' in event) {
      const begun = { kind: kind === 'tool' ? 'call' : (kind as ReplyPart['kind']), name: '', text: '' };
      if (event.type === 'tool-start') begun.name = event.name;
      byBlock.set(event.block, begun);
      found.push(begun);
    }
    const open = 'block' in event ? byBlock.get(event.block) : undefined;
    if (open === undefined) continue;
    if (event.type === 'text-delta' || event.type === 'reasoning-delta') open.text += event.text;
    if (event.type === 'tool-delta') open.text += event.input;
  }
  return joined(
    found.flatMap(({ kind, name, text }): ReplyPart[] => {
      if (kind === 'call') return [{ kind, name, input: JSON.stringify(argumentsObject(text)) }];
      return text === '' ? [] : [{ kind, text }];
    }),
  );
}

/** The events of a provider's bytes, as the gateway reads them. */
function read(codec: Codec<ChatRequest>, bytes: readonly Buffer[], stream: boolean): GatewayEvent[] {
  const events: GatewayEvent[] = [];
  const source = new Observable<GatewayEvent>((subscriber) => {
    subscriber.next({ type: 'answer', status: 200, headers: {} });
    for (const piece of bytes) subscriber.next({ type: 'bytes', bytes: piece });
    subscriber.complete();
  });
  let failure: unknown;
  decodeReply(source, { codec, traits: {}, stream, estimateInput: () => 77 }).subscribe({
    next: (event) => events.push(event),
    error: (error: unknown) => {
      failure = error;
    },
  });
  if (failure !== undefined) throw failure;
  return events;
}

/** Bytes in other cuts than the frames'. */
function cutAnew(frames: readonly string[], length: number): Buffer[] {
  const all = Buffer.from(frames.map((frame) => `${frame}\n\n`).join(''));
  if (length === 0) return frames.map((frame) => Buffer.from(`${frame}\n\n`));
  return Array.from({ length: Math.ceil(all.length / length) }, (_, index) =>
    all.subarray(index * length, (index + 1) * length),
  );
}

function finishOf(events: readonly GatewayEvent[]): string | undefined {
  const finish = events.findLast((event) => event.type === 'finish');
  // There is no refusal in most formats.
  return finish?.type === 'finish' && finish.reason === 'refusal' ? 'content-filter' : finish?.reason;
}

function usageOf(events: readonly GatewayEvent[]): readonly number[] {
  const usage = events.findLast((event) => event.type === 'usage');
  return usage?.type === 'usage' ? [usage.usage.input, usage.usage.output] : [];
}

describe.each(chatFormats.flatMap((provider) => chatFormats.map((client) => [provider, client] as const)))(
  'law 3, nothing vanishes on the way: a %s provider and a %s client',
  (provider, client) => {
    const source = codecOf(provider);
    const goal = codecOf(client);
    const property = (stream: boolean, check: (answer: Answer, events: GatewayEvent[]) => void): void =>
      fc.assert(
        fc.property(answers, fc.constantFrom(0, 1, 7, 100), (answer, length) => {
          // Whole arguments are never cut in the middle where they are an object.
          const isObject =
            provider === 'generate-content' ||
            ((provider === 'messages' || provider === 'converse') && !stream);
          if (isObject && answer.parts.some((one) => one.kind === 'call' && !isWhole(one.input))) return;
          const bytes = stream
            ? cutAnew(streamOf(provider, answer), length)
            : [Buffer.from(JSON.stringify(wholeOf(provider, answer)))];
          check(answer, read(source, bytes, stream));
        }),
        { numRuns: tries(300) },
      );

    function expected(answer: Answer): { parts: ReplyPart[]; finish: string } {
      const calls = answer.parts.some(({ kind }) => kind === 'call');
      const finish = { stop: calls ? 'tool-calls' : 'stop', length: 'length', filter: 'content-filter' }[
        answer.end
      ];
      const normal = answer.parts.map((one) =>
        one.kind === 'call' ? { ...one, input: JSON.stringify(argumentsObject(one.input)) } : one,
      );
      return { parts: normal, finish };
    }

    function expectUsage(answer: Answer, events: readonly GatewayEvent[]): void {
      const [input = 0, output = 0] = usageOf(events);
      if (answer.usageReport === 'all')
        expect([input, output]).toEqual([reportedUsage.input, reportedUsage.output]);
      else {
        expect(input).toBe(77);
        expect(output).toBeGreaterThan(0);
      }
    }

    it('in a stream: what was said, in its order, why it ended, and what it used', () => {
      property(true, (answer, events) => {
        const losses: string[] = [];
        const frames = encodeStream(goal, events, 'm', losses);
        expect(legal[client]?.(frames)).toEqual([]);
        const back = decodeStream(goal, frames.map(writeSse).join(''));
        const { parts: all, finish } = expected(answer);
        expect(partsIn(back)).toEqual(all);
        expect(finishOf(back)).toBe(finish);
        expectUsage(answer, back);
        expect(losses.filter((path) => path.startsWith('opaque'))).toEqual([]);
      });
    });

    it('in a whole reply', () => {
      property(false, (answer, events) => {
        const back = goal.decodeWhole(JSON.parse(JSON.stringify(whole(goal, events))) as JsonObject, {});
        const { parts: all, finish } = expected(answer);
        // One message of a chat completion has one text, one reasoning, and its calls.
        const sorted = (list: readonly ReplyPart[]): ReplyPart[] =>
          joined(list.toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind)));
        const flat = provider === 'chat-completions' || client === 'chat-completions';
        expect(flat ? sorted(partsIn(back)) : partsIn(back)).toEqual(flat ? sorted(all) : all);
        expect(finishOf(back)).toBe(finish);
        expectUsage(answer, back);
      });
    });
  },
);

const order: readonly ReplyPart['kind'][] = ['reasoning', 'text', 'call'];

function isWhole(input: string): boolean {
  return input.trim() !== '' && parseObject(input) !== undefined;
}
