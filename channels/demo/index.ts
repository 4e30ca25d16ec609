/** The demo channel: answers every operation itself, so that a new gateway works without a provider. */
import { z } from 'zod';
import {
  GatewayError,
  isChat,
  isObject,
  parseObject,
  toGatewayError,
  type GatewayEvent,
  type JsonObject,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import type { ReplyContext, RouteParams } from 'sluice/channel-kit';
import { defineChannel, type Format } from 'sluice/internal';
import { answerId, failure, page, pause, refusal, requestId } from './answers.ts';
import { replyEvents } from './events.ts';
import { answerOther, otherOperations } from './operations.ts';
import { understand, type Question } from './question.ts';
import { PromptCache } from './prompt-cache.ts';
import { overloaded, reply, streamSteps, wholeReply, wholeSteps } from './reply.ts';
import { openSession } from './realtime.ts';
import { Seals } from './seals.ts';
import { answerVideo, videoOperations } from './video.ts';

const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'converse'] as const;

const options = z.object({
  speaks: z
    .array(z.enum(formats))
    .min(1)
    .default([...formats])
    .describe('formats for chat, best first'),
  countsTokens: z
    .boolean()
    .default(true)
    .describe('true: counts tokens itself, except in chat completions, which have no such endpoint'),
  delay: z.int().min(0).default(0).describe('time before a response begins, in milliseconds'),
  pace: z.int().min(0).default(0).describe('time between the events of a stream, in milliseconds'),
  account: z
    .string()
    .default('demo')
    .describe(
      "name of the simulated account. Channels with different accounts refuse each other's reasoning signatures",
    ),
  strict: z
    .boolean()
    .default(false)
    .describe(
      'true: chat completions refuse turns with tool calls whose `reasoning_content` was not sent back',
    ),
});

/** Prices, so that a budget in dollars can be tried with the demo. */
const prices = {
  '*': {
    input: 0.1,
    cacheRead: 0.01,
    output: 0.4,
    perImage: 0.001,
    perSecond: 0.000_1,
    perCharacter: 0.000_001,
    perPage: 0.000_1,
  },
};

type Options = z.output<typeof options>;

const limits = { inputLimit: 200_000, outputLimit: 32_000 } as const;

/** The largest whole reply that `!size` and `!chunks` make: streams have no limit. */
const largestWhole = 64 * 1024 * 1024;

/**
 * Demo channel, for first steps and tests. Answers in the real wire formats without a provider: echoes, calls tools, reasons, describes
 * attachments, checks that its signatures come back unchanged, and simulates faults. `channels/README.md` lists the commands.
 */
export default defineChannel({
  name: 'demo',
  models: ['demo', 'demo-thinking', 'demo!*', 'demo-thinking!*'],
  needsKey: false,
  prices,
  options,
  setup(chosen, { format }): ChannelParts {
    const seals = new Seals(chosen.account);
    const cache = new PromptCache();
    const counts = chosen.speaks.filter((name) => name !== 'chat-completions');
    return {
      speaks: {
        chat: chosen.speaks,
        ...(chosen.countsTokens && counts.length > 0 ? { 'count-tokens': counts } : {}),
        ...otherOperations,
        ...videoOperations,
        realtime: ['realtime'],
      },
      // Reasoning is not replayed in the messages format, because its proofs cannot be recreated.
      traits: () => ({ ...limits, replaysReasoning: true, byFormat: { messages: limits } }),
      open: (call, request) => open(call, request, { chosen, format, seals, cache }),
      connect: (call, request) => openSession(call, request),
    };
  },
});

interface Demo {
  readonly chosen: Options;
  readonly format: (name: string) => Format | undefined;
  readonly seals: Seals;
  readonly cache: PromptCache;
}

async function open(call: Call, wire: UpstreamRequest, demo: Demo): Promise<Upstream> {
  const format = demo.format(wire.format);
  if (format === undefined)
    throw new Error(`The demo was asked in the format "${wire.format}", which does not exist.`);
  if (Object.hasOwn(videoOperations, wire.operation)) return answerVideo(call, format, wire, demo.chosen);
  if (Object.hasOwn(otherOperations, wire.operation)) return answerOther(call, format, wire, demo.chosen);
  let question: Question;
  let document: JsonObject;
  try {
    document = parseObject(wire.body.toString()) ?? refuseBody();
    if (wire.format === 'messages' && isObject(document.thread)) refuseThread();
    if (wire.format === 'responses' && typeof document.previous_response_id === 'string')
      refusePrevious(document.previous_response_id);
    question = decode(format, wire, document);
    demo.seals.check(question.request, {
      format: wire.format,
      reasons: question.requestedReasoning,
      strict: demo.chosen.strict,
    });
  } catch (error) {
    return refusal(call, format, toGatewayError(error));
  }
  const { switches } = question;
  await pause(call, demo.chosen.delay + (switches['slow-headers'] ?? 0));
  if (switches.html) return page(call, switches.status ?? 200);
  if (switches.status !== undefined)
    return refusal(call, format, failure(switches.status, switches['retry-after']));
  if (wire.operation === 'count-tokens') return whole(call, format, question, document, counted(question));
  const input = demo.cache.read(question.request, question.input);
  const events = replyEvents({ ...question, input }, demo.seals, answerId(call));
  return wire.stream && !switches.whole
    ? streamed(call, format, question, document, events, demo.chosen.pace)
    : whole(call, format, question, document, events);
}

function counted({ input }: Question): readonly GatewayEvent[] {
  return [{ type: 'result', value: { tokens: input.input } }];
}

function refuseBody(): never {
  throw new GatewayError('invalid_json', 'The body is not a JSON object.');
}

/** Throws for a conversation by id, because the demo keeps none. Clients then send the history themselves. */
function refuseThread(): never {
  throw new GatewayError('thread_unsupported_request', 'The demo keeps no threads: send the whole history.', {
    param: 'thread',
    details: { error_code: 'thread_unsupported_request' },
  });
}

function refusePrevious(id: string): never {
  throw new GatewayError('previous_response_not_found', `Previous response with id '${id}' not found.`, {
    param: 'previous_response_id',
  });
}

function decode(format: Format, wire: UpstreamRequest, document: JsonObject): Question {
  const codec = format.codecs[wire.operation];
  if (codec === undefined)
    throw new GatewayError('unknown_url', `The demo does not do ${wire.operation} in this format.`);
  const params: RouteParams = { model: wire.model, stream: wire.stream };
  const request = codec.decodeRequest(document, params);
  if (!isChat(request)) throw new Error(`The demo has no answer to ${wire.operation} here.`);
  return understand(request, wire);
}

function streamed(
  call: Call,
  format: Format,
  question: Question,
  document: JsonObject,
  events: Iterable<GatewayEvent>,
  pace: number,
): Upstream {
  const { switches, wire } = question;
  const encoder = format.codecs.chat?.encodeStream?.(context(call, question, document));
  if (encoder === undefined) throw new Error(`The format "${format.name}" has no streams.`);
  const headers = { ...format.replyHeaders(requestId(call)), 'content-type': 'text/event-stream' };
  return reply(call, 200, headers, streamSteps(events, encoder, switches, wire.format), pace);
}

function whole(
  call: Call,
  format: Format,
  question: Question,
  document: JsonObject,
  events: Iterable<GatewayEvent>,
): Upstream {
  const { switches, wire } = question;
  if (switches['200-error'] || switches['error-after'] !== undefined)
    return { ...refusal(call, format, overloaded()), status: 200 };
  if (Math.max(switches.size ?? 0, (switches.chunks ?? 0) * 8) > largestWhole) {
    return refusal(
      call,
      format,
      new GatewayError('invalid_value', 'The demo makes whole replies of up to 64 MiB: ask for a stream.'),
    );
  }
  const encoder = format.codecs[wire.operation]?.encodeWhole(context(call, question, document));
  if (encoder === undefined) throw new Error(`The format "${format.name}" has no ${wire.operation}.`);
  const headers = { ...format.replyHeaders(requestId(call)), 'content-type': 'application/json' };
  return reply(call, 200, headers, wholeSteps(wholeReply(events, encoder), switches));
}

function context(call: Call, { wire, input }: Question, document: JsonObject): ReplyContext {
  return {
    model: wire.model,
    body: document,
    requestId: requestId(call),
    created: Math.floor(Date.now() / 1000),
    inputEstimate: input.input,
    drop: () => {},
  };
}
